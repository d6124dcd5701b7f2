import { execFile } from "node:child_process";
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { openContractWorld } from "../../clients/contract/contract-world.ts";
import type { GrpcEngine } from "../../clients/contract/grpc-engines.ts";
import type { ConformancePart } from "../conformance-part.ts";
import { type CaseResult, judgeResults } from "../judge-results.ts";
import { cacheFolder, runPip } from "../tool-cache.ts";
import { type EnvoyCase, envoyCases } from "./envoy-cases.ts";
import { startEnvoy } from "./start-envoy.ts";

const folder = path.join(cacheFolder, "envoy");
const program = path.join(folder, "envoy", "_bin", "envoy");
const deployed = fileURLToPath(new URL("../../../deploy/compose/envoy.yaml", import.meta.url));
const requirements = fileURLToPath(new URL("requirements.txt", import.meta.url));

export const envoyPart: ConformancePart = {
  name: "envoy",
  summary: "a real Envoy in front of an app, asking Sluice (needs Python with pip, on Linux x86-64)",
  async play(engine, progress) {
    progress("installing Envoy");
    const install = ["install", "--target", folder, "--upgrade", "--no-deps", "--only-binary", ":all:"];
    await runPip([...install, "--require-hashes", "--requirement", requirements]);
    const { stdout } = await promisify(execFile)(program, ["--version"]);
    const version = /\/(\d+\.\d+\.\d+)\//.exec(stdout)?.[1] ?? "unknown";
    progress("reading the configuration for Compose");
    const results: CaseResult[] = [await checkDeployed()];
    for (const one of envoyCases) {
      progress(one.name);
      const detail = await playCase(one, engine).then(
        () => undefined,
        (error: Error) => error.message.split("\n")[0]!,
      );
      const outcome = detail === undefined ? "passed" : "failed";
      results.push({ id: one.name, name: one.name, outcome, detail: detail ?? "" });
    }
    return [{ part: "envoy", engine: engine.name, peer: "Envoy", version, ...judgeResults(results, []) }];
  },
};

/** What deploy/compose gives Envoy, which is in its format whatever runs there. */
async function checkDeployed(): Promise<CaseResult> {
  const id = "accepts deploy/compose/envoy.yaml";
  const args = ["--mode", "validate", "--config-path", deployed, "--log-level", "error"];
  const detail = await promisify(execFile)(program, args).then(
    () => "",
    (error: Error & { stderr: string }) => error.stderr.trim().split("\n").at(-1) ?? error.message,
  );
  return { id, name: id, outcome: detail === "" ? "passed" : "failed", detail };
}

async function playCase({ servers, drain = "0s", run }: EnvoyCase, engine: GrpcEngine): Promise<void> {
  const seen = new Map<string, number>();
  const app = createServer((request, response) => {
    const tenant = String(request.headers["x-tenant"]);
    seen.set(tenant, (seen.get(tenant) ?? 0) + 1);
    response.end("from the app");
  });
  app.listen(0, "127.0.0.1");
  await once(app, "listening");
  const world = await openContractWorld(engine);
  try {
    const sluices = await Promise.all(Array.from({ length: servers }, () => world.start({ drain })));
    const envoy = await startEnvoy(program, {
      app: `127.0.0.1:${(app.address() as AddressInfo).port}`,
      sluices: sluices.map(({ target }) => target.address),
    });
    try {
      await run({ envoy, seen: (tenant) => seen.get(tenant) ?? 0, drain: (index) => sluices[index]!.drain() });
    } finally {
      await envoy.close();
    }
  } finally {
    await world.close();
    app.close();
    app.closeAllConnections();
  }
}
