import { execFile } from "node:child_process";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { promisify } from "node:util";
import { openContractWorld } from "../../clients/contract/contract-world.ts";
import type { ConformancePart } from "../conformance-part.ts";
import { type CaseResult, judgeResults } from "../judge-results.ts";
import { binFolder, runGo } from "../tool-cache.ts";
import { h2specExceptions } from "./h2spec-exceptions.ts";
import { parseReport } from "./parse-report.ts";

/** The newest version that Go's module proxies serve; later ones are tagged in a way that Go does not accept. */
const version = "v2.2.1+incompatible";
/** h2spec waits this long for an answer; a busy machine may need more than its default of 2 s. */
const patienceSeconds = 4;

const run = promisify(execFile);
const passed = { outcome: "passed", detail: "" } as const;
const tries = 20;

/**
 * Whether the server had answered the whole request before h2spec's wrong frame reached it. h2spec asks with GET, which a
 * gRPC server refuses by the headers alone; a frame on a stream that is over is ignored, and h2spec takes the answer for a
 * failure. Which comes first is up to the machine, so such a case is played again until the frame is in time.
 */
function wasOvertaken({ outcome, detail }: CaseResult): boolean {
  return outcome === "failed" && /; got (HEADERS Frame \(length:\d+, flags:0x05,|RST_STREAM Frame)/.test(detail);
}

async function passesOnce(play: () => Promise<boolean>): Promise<boolean> {
  for (let times = 0; times < tries; times++) if (await play()) return true;
  return false;
}

export const h2specPart: ConformancePart = {
  name: "h2spec",
  summary: "h2spec, every case of HTTP/2 and HPACK, strict ones included (needs Go)",
  async play(engine, progress) {
    progress(`installing h2spec ${version}`);
    await runGo(["install", `github.com/summerwind/h2spec/cmd/h2spec@${version}`]);
    const folder = await mkdtemp(path.join(tmpdir(), "sluice-h2spec-"));
    const world = await openContractWorld(engine);
    try {
      progress("playing about 150 cases");
      const [host = "", port = ""] = world.open.target.address.split(":");
      const report = path.join(folder, "report.xml");
      const where = ["--host", host, "--port", port, "--path", "/grpc.health.v1.Health/Check"];
      const how = ["--strict", "--timeout", String(patienceSeconds), "--junit-report", report];
      // It exits with 1 if a case fails; the report says which.
      const play = (...cases: string[]): Promise<boolean> =>
        run(path.join(binFolder, "h2spec"), [...where, ...how, ...cases]).then(
          () => true,
          () => false,
        );
      await play();
      const first = parseReport(await readFile(report, "utf8"));
      const exceptions = h2specExceptions[engine.name] ?? [];
      const results: CaseResult[] = [];
      for (const result of first) {
        const again = wasOvertaken(result) && !exceptions.some(({ id }) => id === result.id);
        if (again) progress(`playing ${result.id} again`);
        results.push(again && (await passesOnce(() => play(result.id))) ? { ...result, ...passed } : result);
      }
      const verdict = judgeResults(results, exceptions);
      return [
        { part: "h2spec", engine: engine.name, peer: "h2spec", version: version.replace(/\+.*/, ""), ...verdict },
      ];
    } finally {
      await world.close();
      await rm(folder, { recursive: true, force: true });
    }
  },
};
