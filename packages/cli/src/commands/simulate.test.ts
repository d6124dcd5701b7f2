import { EventEmitter } from "node:events";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Readable } from "node:stream";
import { gzipSync, zstdCompressSync } from "node:zlib";
import { type Daemon, parseSettings, startDaemon } from "@sluice/server";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { runProgram, type World } from "../program.ts";
import { renderReading, showReading } from "./show-reading.ts";

interface Outcome {
  readonly code: number;
  readonly out: string;
  readonly err: string;
}

let folder: string;
let daemon: Daemon;

async function run(args: readonly string[], terminal: Partial<World["terminal"]> = {}): Promise<Outcome> {
  let out = "";
  let err = "";
  const code = await runProgram({
    args: ["simulate", ...args.map((arg) => arg.replace(/^@/, `${folder}/`))],
    env: {},
    terminal: {
      stdout: { write: (text: string) => (out += text) },
      stderr: { write: (text: string) => (err += text) },
      ...terminal,
    },
    signals: new EventEmitter(),
  });
  return { code, out, err };
}

const policy = (windows: string): string =>
  `policies:\n  - id: api\n    limits: [{ by: [ip], windows: [${windows}] }]\n    on_failure: open\n`;

/** Six requests of one client and two of another, in two seconds; the last was denied. */
function renderLog(from = 0, to = 8): string {
  const line = (i: number): string =>
    `203.0.113.${i % 4 === 3 ? 8 : 7} - - [31/Jan/2026:12:00:0${Math.floor(i / 4)} +0000] "GET /orders/${i} HTTP/1.1" ${i === 7 ? 429 : 200} 17 "-" "-"\n`;
  return Array.from({ length: to - from }, (_, i) => line(from + i)).join("");
}

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "sluice-simulate-"));
  await writeFile(join(folder, "candidate.yaml"), policy("2/m"));
  await writeFile(join(folder, "now.yaml"), policy("5/m"));
  await writeFile(join(folder, "bad.yaml"), "policies: [{ id: api, limit: [] }]\n");
  await writeFile(join(folder, "access.log"), renderLog());
  await writeFile(join(folder, "first.log.gz"), gzipSync(renderLog(0, 4)));
  await writeFile(join(folder, "second.log.zst"), zstdCompressSync(renderLog(4, 8)));
  await writeFile(join(folder, "cut.log.gz"), gzipSync(renderLog()).subarray(0, -12));
  await writeFile(join(folder, "nonsense.log"), "hello\nworld\n");
  await writeFile(join(folder, "empty.log"), "");
  const reading = parseSettings({}, { httpPort: "0", grpcPort: "off", config: join(folder, "now.yaml") });
  if (reading.kind === "problems") throw new Error("settings");
  daemon = await startDaemon({ settings: reading.settings, log: { debug() {}, info() {}, warn() {}, error() {} } });
});

afterAll(async () => {
  await daemon.close();
  await rm(folder, { recursive: true, force: true });
});

async function result(...args: readonly string[]): Promise<Record<string, never>> {
  const { code, out, err } = await run([...args, "--policies", "@candidate.yaml", "--json"]);
  expect([code, err]).toEqual([0, ""]);
  return JSON.parse(out);
}

describe("sluice simulate", () => {
  it("compares with what the log says", async () => {
    expect(await result("@access.log")).toMatchObject({
      logs: { lines: 8, unreadable: 0, late: 0, formats: ["combined"] },
      result: {
        requests: 8,
        now: { source: "recording", denied: 1 },
        candidate: { denied: 4, range: { least_denied: 4, most_denied: 4 } },
        flips: { allowed_allowed: 3, allowed_denied: 4, denied_allowed: 1, denied_denied: 0 },
        hurt: { subjects: 1, top: [{ subject: "203.0.113.7", requests: 6, newly_denied: 4 }] },
      },
      fail_if: [],
    });
  });

  it("compares with a policy file, and with a server's policies", async () => {
    const flips = { allowed_allowed: 4, allowed_denied: 3, denied_allowed: 0, denied_denied: 1 };
    expect(await result("@access.log", "--now", "@now.yaml")).toMatchObject({ result: { flips } });
    expect(await result("@access.log", "--server", daemon.url)).toMatchObject({ result: { flips } });
  });

  it("reads compressed files, merged by time, and standard input", async () => {
    expect(await result("@second.log.zst", "@first.log.gz")).toMatchObject({
      logs: { formats: ["combined", "combined"], late: 0 },
      result: { requests: 8, flips: { allowed_denied: 4 } },
    });
    for (const bytes of [renderLog(), gzipSync(renderLog())]) {
      const stdin = Readable.from([Buffer.from(bytes)]);
      const { code, out } = await run(["-", "--policies", "@candidate.yaml", "--json"], { stdin });
      expect([code, JSON.parse(out)]).toMatchObject([0, { result: { requests: 8 } }]);
    }
  });

  it("prints tables, plots and notes", async () => {
    const { code, out } = await run([
      "@access.log",
      "--policies",
      "@candidate.yaml",
      "--now",
      "@now.yaml",
      "--find-limit",
      "api",
    ]);
    expect(code).toBe(0);
    expect(out).toContain("8 requests from 2026-01-31 12:00:00 UTC to 2026-01-31 12:00:01 UTC");
    expect(out).toMatch(/^candidate +4 +4 +50\.0 % +4 … 4$/m);
    expect(out).toMatch(/^allowed +4 \(50\.0 %\) +3 \(37\.5 %\)$/m);
    expect(out).toMatch(/^api +8 +1 +8 +4 +0$/m);
    expect(out).toMatch(/^denied +\d\S* *[▁▂▃▄▅▆▇█]+/m);
    expect(out).toMatch(/^api +ip +203\.0\.113\.7 +6 +3 +75\.0 %$/m);
    expect(out).toMatch(/^ *×3 +6\/m +0 +0 % +0 .*← nothing denied$/m);
    expect(out).toMatch(/^api +ip +2\/m +2 +6 +6 +6 +6 +2 +1 \(50\.0 %\)$/m);
    expect(out).toContain("The log has whole seconds.");
    expect(out).toContain("upper bound");
  });

  it("ends with 1 if a condition to fail by is so", async () => {
    const conditions = ["--fail-if", "denied > 10%", "--fail-if", "subjects-hurt > 5"];
    const { code, out } = await run(["@access.log", "--policies", "@candidate.yaml", ...conditions]);
    expect(code).toBe(1);
    expect(out).toContain("failed: denied > 10%, it is 50 %\n");
    expect(out).toContain("passed: not subjects-hurt > 5, it is 1\n");
    const { code: passed } = await run(["@access.log", "--policies", "@candidate.yaml", "--fail-if", "denied > 60%"]);
    expect(passed).toBe(0);
  });

  it("writes one HTML file", async () => {
    const { code } = await run(["@access.log", "--policies", "@candidate.yaml", "--html", "@report.html"]);
    expect(code).toBe(0);
    expect(await readFile(join(folder, "report.html"), "utf8")).toMatch(
      /^<!doctype html>[\s\S]*203\.0\.113\.7[\s\S]*<\/html>\n$/,
    );
    const refused = await run(["@access.log", "--policies", "@candidate.yaml", "--html", "@nowhere/report.html"]);
    expect(refused).toMatchObject({ code: 2, err: expect.stringContaining("cannot be written") });
  });

  it("shows lines that it cannot read, and maps dimensions", async () => {
    await writeFile(
      join(folder, "app.json"),
      `{"ts":1769860800123,"who":"ada"}\nnonsense\n{"ts":1769860800124,"who":"ada"}\n`,
    );
    await writeFile(join(folder, "users.yaml"), policy("1/m").replace("ip", "user"));
    const { code, out } = await run(["@app.json", "--policies", "@users.yaml", "--map", "user=json:$.who"]);
    expect(code).toBe(0);
    expect(out).toMatch(/^api +user +ada +2 +1 /m);
    expect(out).toContain("1 of 3 lines could not be read");
    expect(out).toContain("app.json:2 nonsense");
    expect((await run(["@app.json", "--policies", "@users.yaml"])).out).toContain(
      "limit user of policy api is by user, and was left out",
    );
  });

  it.each([
    [["@access.log"], "required option '--policies <path>' not specified"],
    [["@access.log", "--policies", "@nowhere.yaml"], "nowhere.yaml"],
    [["@access.log", "--policies", "@bad.yaml"], "limit"],
    [["@nowhere.log", "--policies", "@candidate.yaml"], 'nowhere.log" cannot be read: ENOENT'],
    [["@cut.log.gz", "--policies", "@candidate.yaml"], "cut.log.gz cannot be read: unexpected end of file"],
    [["@empty.log", "--policies", "@candidate.yaml"], "the logs are empty"],
    [
      ["@nonsense.log", "--policies", "@candidate.yaml"],
      'none of 2 lines could be read as combined. The first line is "hello".',
    ],
    [["@access.log", "--policies", "@candidate.yaml", "--fail-if", "denied < 1"], '"denied < 1" should be'],
    [
      ["@access.log", "--policies", "@candidate.yaml", "--map", "tenant=header:x-tenant"],
      "combined logs have the headers",
    ],
    [
      ["@access.log", "--policies", "@candidate.yaml", "--find-limit", "other"],
      "the candidate has no policy other; it has api",
    ],
    [["@access.log", "--policies", "@candidate.yaml", "--denied-status", "x"], "--denied-status is"],
    [["@access.log", "--policies", "@candidate.yaml", "--reorder", "2d"], "--reorder is"],
    [["@access.log", "--policies", "@candidate.yaml", "--format", "iis"], "Allowed choices are combined"],
    [
      ["@access.log", "--policies", "@candidate.yaml", "--now", "@now.yaml", "--server", "http://127.0.0.1:1"],
      "cannot be used with",
    ],
    [["-", "-", "--policies", "@candidate.yaml"], "can be read once"],
  ])("ends with 2, and says why: %j", async (args, message) => {
    const { code, out, err } = await run(args);
    expect([code, out]).toEqual([2, ""]);
    expect(err).toContain(message);
  });
});

describe("progress", () => {
  it("shows the share, the speed and how long it will take, where sizes are known", () => {
    expect(renderReading(1_200_000, 400, 1_000, 2_400)).toBe(
      "[########------------] 40%, 1.2M lines, 500.0k a second, 4s left",
    );
    expect(renderReading(999, 400, undefined, 1_000)).toBe("999 lines, 999 a second");
  });

  it("is for terminals alone", () => {
    const written: string[] = [];
    const terminal = { stdout: { write() {} }, stderr: { write: (text: string) => written.push(text) } };
    showReading([], terminal).show({ lines: 1, readBytes: 1 });
    expect(written).toEqual([]);
  });
});
