import { execFile } from "node:child_process";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { curlAdapter } from "../clients/adapters/curl-adapter.ts";
import { openDriver } from "../clients/adapters/driver-adapter.ts";
import { grpcJsAdapter } from "../clients/adapters/grpc-js-adapter.ts";
import { grpcioAdapter } from "../clients/adapters/grpcio-adapter.ts";
import { nghttpAdapter } from "../clients/adapters/nghttp-adapter.ts";
import { casesFor } from "../clients/contract/contract-cases.ts";
import type { ClientAdapter, Need } from "../clients/contract/contract-client.ts";
import { openContractWorld } from "../clients/contract/contract-world.ts";
import type { GrpcEngine } from "../clients/contract/grpc-engines.ts";
import { clientExceptions } from "./client-exceptions.ts";
import type { ConformancePart, PartName, PartResult } from "./conformance-part.ts";
import { type CaseResult, judgeResults } from "./judge-results.ts";
import { binFolder, cacheFolder, runCargo, runGo } from "./tool-cache.ts";

const library: Readonly<Partial<Record<Need, string>>> = {
  "raw requests": "the library writes headers and frames",
  frames: "the library writes frames",
};

const goDriver = path.join(binFolder, "grpc-go-driver");
const goAdapter = driverAdapter("grpc-go", goDriver);

const rustFolder = fileURLToPath(new URL("rust/", import.meta.url));
const rustDriver = path.join(cacheFolder, "cargo", "release", "tonic-driver");
const tonicAdapter = driverAdapter("tonic", rustDriver);

/** Every client of the contract, those of `npm test` included. */
export const clientAdapters: readonly ClientAdapter[] = [
  grpcJsAdapter,
  grpcioAdapter,
  curlAdapter,
  nghttpAdapter,
  goAdapter,
  tonicAdapter,
];

/** The clients of `npm test`, together, and those that need a compiler, each by itself. */
export const clientParts: readonly ConformancePart[] = [
  {
    name: "clients",
    summary: "the contract of the gRPC API with grpc-js, grpcio, curl and nghttp, as in npm test",
    async play(engine, progress) {
      const results: PartResult[] = [];
      for (const adapter of [grpcJsAdapter, grpcioAdapter, curlAdapter, nghttpAdapter])
        results.push(await playContract("clients", adapter, engine, progress));
      return results;
    },
  },
  {
    name: "grpc-go",
    summary: "the same contract with grpc-go (needs Go)",
    async play(engine, progress) {
      progress("building the client");
      await runGo(["build", "-o", goDriver, "."], fileURLToPath(new URL("go/", import.meta.url)));
      return [await playContract("grpc-go", goAdapter, engine, progress)];
    },
  },
  {
    name: "tonic",
    summary: "the same contract with tonic (needs Cargo; the first build takes minutes)",
    async play(engine, progress) {
      progress("building the client");
      await runCargo(["build", "--release", "--locked"], rustFolder);
      return [await playContract("tonic", tonicAdapter, engine, progress)];
    },
  },
];

function driverAdapter(name: string, file: string): ClientAdapter {
  return {
    name,
    lacks: library,
    version: async () => (await promisify(execFile)(file, ["--version"])).stdout.trim(),
    open: () => openDriver(name, file, []),
  };
}

async function playContract(
  part: PartName,
  adapter: ClientAdapter,
  engine: GrpcEngine,
  progress: (text: string) => void,
): Promise<PartResult> {
  const world = await openContractWorld(engine);
  const client = await adapter.open();
  try {
    const results: CaseResult[] = [];
    for (const one of casesFor(adapter)) {
      progress(`${adapter.name}: ${one.name}`);
      const detail = await one.run(client, world).then(
        () => undefined,
        (error: Error) => error.message.split("\n")[0]!,
      );
      const outcome = detail === undefined ? "passed" : "failed";
      results.push({ id: one.name, name: one.name, outcome, detail: detail ?? "" });
    }
    const verdict = judgeResults(results, clientExceptions[engine.name]?.[adapter.name] ?? []);
    return { part, engine: engine.name, peer: adapter.name, version: await adapter.version(), ...verdict };
  } finally {
    await client.close();
    await world.close();
  }
}
