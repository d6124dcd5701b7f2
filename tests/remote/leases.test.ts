import { execFile } from "node:child_process";
import { writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import path from "node:path";
import { setImmediate as turn } from "node:timers/promises";
import { promisify } from "node:util";
import { Server, ServerCredentials, type ServerDuplexStream } from "@grpc/grpc-js";
import { type ConnectOptions, connect, type RemoteLimiter } from "@sluice/client";
import {
  type CheckBatchRequest,
  type CheckBatchResponse,
  Decision,
  grpcService,
  RateLimiterDefinition,
} from "@sluice/protocol";
import { startServer, type TestServer } from "@sluice/test-servers";
import type { CheckRequest } from "sluice";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { repositoryRoot } from "../repository/source-tree.ts";
import { createTestFiles, type TestFiles } from "./remote-policies.ts";
import { type SluiceProcess, startSluice } from "./sluice-process.ts";

/** Even on a busy machine a check is answered within this time. */
const patientMs = 15_000;

const policies = {
  policies: [
    // Refills all at once, once a month, so its usage is all charges.
    {
      id: "total",
      match: { kind: "total" },
      limits: [{ by: ["user"], algorithm: "fixed_window", windows: ["1000000/30d"] }],
    },
    { id: "few", match: { kind: "few" }, limits: [{ by: ["user"], windows: ["4000/m"] }], max_overshoot: 0.25 },
    {
      id: "exact",
      match: { kind: "exact" },
      counters: "exact",
      limits: [{ by: ["user"], algorithm: "fixed_window", windows: ["1000000/30d"] }],
    },
  ],
  default: "none",
};
/** The allowance of each policy: one in a hundred of the million, a quarter of the four thousand. */
const allowances = { total: 10_000, few: 1_000 };

type Counters = "memory" | "valkey";

let files: TestFiles;
let config: string;
let valkey: TestServer;
/** By the place of their counters. */
let lasting: Record<Counters, readonly SluiceProcess[]>;
const running: { close(): Promise<unknown> }[] = [];
let subjects = 0;

beforeAll(async () => {
  files = await createTestFiles();
  config = path.join(files.folder, "leases.json");
  await writeFile(config, JSON.stringify(policies));
  valkey = await startServer({ flavor: "valkey" });
  const [memory, first, second] = await Promise.all([start("memory"), start("valkey"), start("valkey")]);
  lasting = { memory: [memory], valkey: [first, second] };
}, 120_000);

afterEach(async () => {
  for (const one of running.splice(0)) await one.close();
});

afterAll(async () => {
  await Promise.all(Object.values(lasting ?? {}).flatMap((servers) => servers.map((server) => server.close())));
  await valkey?.close();
  await files?.close();
});

/** Units are credited only to callers with a token. */
const token = "check-token";

/** Leaves leases to its clients. */
function start(counters: Counters, ...more: readonly string[]): Promise<SluiceProcess> {
  const redis = counters === "valkey" ? ["--redis", valkey.url, "--lease-hot", "1000000"] : [];
  return startSluice("--config", config, "--tokens", files.tokens, ...redis, ...more);
}

/** Removed with the test. */
function kept<T extends { close(): Promise<unknown> }>(one: T): T {
  running.unshift(one);
  return one;
}

/** A subject with unused counters. */
function newRequest(kind: string): CheckRequest {
  subjects += 1;
  return { dimensions: { user: `u${subjects}`, kind } };
}

type Protocol = "grpc" | "http";

function client(servers: SluiceProcess | readonly SluiceProcess[], protocol: Protocol, options: ConnectOptions = {}) {
  const addresses = [servers].flat().map((server) => server[protocol]);
  return kept(connect(addresses, { deadlineMs: patientMs, whenUnavailable: "closed", token, ...options }));
}

/** An allowed check: when it was sent and answered, so that it was decided in between. */
interface Admitted {
  readonly askedMs: number;
  readonly answeredMs: number;
}

/** Sends this many checks, some at once, and yields to the event loop. */
async function hammer(limiter: RemoteLimiter, request: CheckRequest, times: number, width = 32): Promise<Admitted[]> {
  const admitted: Admitted[] = [];
  let left = times;
  const lanes = Array.from({ length: width }, async () => {
    while (left > 0) {
      left -= 1;
      const askedMs = performance.now();
      const { allowed, degraded } = await limiter.check(request);
      if (degraded !== undefined) throw new Error(`degraded: ${degraded}`);
      if (allowed) admitted.push({ askedMs, answeredMs: performance.now() });
      if (left % 8 === 0) await turn();
    }
  });
  await Promise.all(lanes);
  return admitted;
}

/** The charges, by the server's account. */
async function readUsed(server: SluiceProcess, request: CheckRequest): Promise<number> {
  const witness = client(server, "http", { leases: false });
  const { used, degraded } = await witness.peek(request);
  if (degraded !== undefined) throw new Error("the witness was not answered");
  return used!;
}

/** Granted and unspent units, by the counters' account. */
async function readUnspent(server: SluiceProcess, request: CheckRequest): Promise<number> {
  const response = await fetch(`${server.http}/v1/lease`, {
    method: "POST",
    headers: { "content-type": "application/json", authorization: `Bearer ${token}` },
    body: JSON.stringify({ check: request, want: 0, settled: { epoch: 0 } }),
  });
  const { unspent } = (await response.json()) as { unspent: number };
  return unspent;
}

describe.each(["memory", "valkey"] as const)("a remote limiter that leases, with counters in %s", (counters) => {
  it.each(["grpc", "http"] as const)(
    "decides most checks of a busy subject locally, and gives back the rest (%s)",
    { timeout: 120_000 },
    async (protocol) => {
      const server = lasting[counters][0]!;
      const request = newRequest("total");
      const limiter = client(server, protocol);
      const admitted = await hammer(limiter, request, 20_000);
      expect(admitted).toHaveLength(20_000);
      const { decided, calls } = limiter.stats.leases;
      expect(decided).toBeGreaterThan(10_000);
      expect(calls).toBeLessThan(2_000);
      // Remote decisions and grants are charged. A call may be in flight, and previews are cached for a moment.
      const uncharged = async (): Promise<number> => {
        const { granted, returned } = limiter.stats.leases;
        return 20_000 - decided + granted - returned - (await readUsed(server, request));
      };
      await expect.poll(uncharged, { timeout: patientMs, interval: 60 }).toBe(0);
      expect(await readUnspent(server, request)).toBeLessThanOrEqual(allowances.total);
      await limiter.close();
      const { granted } = limiter.stats.leases;
      expect(limiter.stats.leases).toMatchObject({ held: 0, units: 0, lost: 0, returned: granted - decided });
      await expect.poll(() => readUsed(server, request), { timeout: patientMs, interval: 60 }).toBe(20_000);
      expect(await readUnspent(server, request)).toBe(0);
      // So the next one can get as much as the first.
      const next = client(server, protocol);
      await hammer(next, request, 5_000);
      expect(next.stats.leases.decided).toBeGreaterThan(1_000);
    },
  );

  it("never admits more than the limit and its allowance, in any interval", { timeout: 120_000 }, async () => {
    const servers = lasting[counters];
    const request = newRequest("few");
    const clients = [client(servers, "grpc"), client(servers, "http"), client(servers, "grpc")];
    const startMs = performance.now();
    const admitted = (await Promise.all(clients.map((one) => hammer(one, request, 8_000)))).flat();
    expect(clients.reduce((sum, { stats }) => sum + stats.leases.decided, 0)).toBeGreaterThan(1_000);
    expect(admitted.length).toBeGreaterThan(4_000);
    expect(admitted.length).toBeLessThan(24_000);
    const stepMs = 50;
    const end = Math.ceil((performance.now() - startMs) / stepMs);
    let worst = Number.NEGATIVE_INFINITY;
    for (let from = 0; from < end; from++) {
      // By the step in which they were answered: all of those sent since.
      const answered = new Array<number>(end + 1).fill(0);
      for (const { askedMs, answeredMs } of admitted) {
        if (askedMs - startMs >= from * stepMs) answered[Math.ceil((answeredMs - startMs) / stepMs)]! += 1;
      }
      let sum = 0;
      for (let to = from; to <= end; to++) {
        sum += answered[to]!;
        worst = Math.max(worst, sum - (4_000 + ((to - from) * stepMs * 4_000) / 60_000));
      }
    }
    expect(worst).toBeLessThanOrEqual(allowances.few);
  });

  it("continues while its server is gone, until the stale budget is over", { timeout: 120_000 }, async () => {
    const server = kept(await start(counters, "--lease-time", "5s", "--lease-stale", "2s"));
    const request = newRequest("total");
    const limiter = client(server, "grpc");
    const inHand = async (): Promise<number> => {
      await hammer(limiter, request, 500);
      return limiter.stats.leases.units;
    };
    await expect.poll(inHand, { timeout: patientMs, interval: 1 }).toBeGreaterThan(200);
    await server.close();
    const { decided, units } = limiter.stats.leases;
    expect(await limiter.check(request)).toMatchObject({ allowed: true, policy: "total", degraded: undefined });
    expect(limiter.stats.leases.decided).toBe(decided + 1);
    // So few that time ends it.
    const degraded = async (): Promise<string | undefined> => (await limiter.check(request)).degraded;
    await expect.poll(degraded, { timeout: patientMs, interval: 100 }).toBe("storage_unavailable");
    expect(limiter.stats.leases.decided - decided).toBeLessThan(units);
    expect(await limiter.check(request)).toMatchObject({ allowed: false, reason: "degraded" });
  });
});

describe("a remote limiter does not lease", () => {
  it.each(["grpc", "http"] as const)("limits that are counted exactly (%s)", async (protocol) => {
    const server = lasting.memory[0]!;
    const request = newRequest("exact");
    const limiter = client(server, protocol);
    expect(await hammer(limiter, request, 2_000)).toHaveLength(2_000);
    expect(limiter.stats.leases).toMatchObject({ held: 0, decided: 0, calls: 1, refused: 1 });
    expect(await readUsed(server, request)).toBe(2_000);
  });

  it("if it is configured not to, or its server is", { timeout: 120_000 }, async () => {
    const without = kept(await start("memory", "--leases", "off"));
    const request = newRequest("total");
    const idle = client(lasting.memory, "grpc", { leases: false });
    await hammer(idle, request, 1_000);
    expect(idle.stats.leases).toMatchObject({ calls: 0, decided: 0 });
    const refused = client(without, "grpc");
    await hammer(refused, request, 1_000);
    expect(refused.stats.leases).toMatchObject({ calls: 1, refused: 1, decided: 0 });
  });

  it.each([
    ["grpc", startOldGrpc],
    ["http", startOldHttp],
  ])("from a server that is too old for leases, and still sends it checks (%s)", async (_, startOld) => {
    const { address } = kept(await startOld());
    const limiter = kept(connect(address, { deadlineMs: patientMs, whenUnavailable: "closed" }));
    expect(await hammer(limiter, newRequest("total"), 2_000)).toHaveLength(2_000);
    expect(limiter.stats.leases).toMatchObject({ held: 0, decided: 0, calls: 1, refused: 1 });
    expect(limiter.stats.addresses).toMatchObject([{ state: "ready", failedBatches: 0 }]);
  });

  it.each([
    [{ leases: true }, "leases"],
    [{ leases: { perSecond: 0 } }, "leases.perSecond"],
    [{ leases: { max: 1.5 } }, "leases.max"],
    [{ leases: { staleMs: -1 } }, "leases.staleMs"],
  ])("with invalid options: %j", (options, name) => {
    expect(() => connect("grpc://127.0.0.1:9", options as ConnectOptions)).toThrow(name);
  });
});

it("a process that leases and does not close can end", { timeout: 120_000 }, async () => {
  const server = lasting.memory[0]!;
  const program = `
    import { connect } from "@sluice/client";
    const limiter = connect("${server.grpc}", { deadlineMs: ${patientMs}, whenUnavailable: "closed", token: "${token}" });
    for (let i = 0; i < 1000; i++) await limiter.check(${JSON.stringify(newRequest("total"))});
    console.log(limiter.stats.leases.decided > 100);`;
  const args = ["-C", "source", "--input-type=module", "-e", program];
  const { stdout } = await promisify(execFile)(process.execPath, args, { cwd: repositoryRoot, timeout: patientMs * 6 });
  expect(stdout).toBe("true\n");
});

interface OldServer {
  readonly address: string;
  close(): Promise<void>;
}

/** Allows everything, and has only the methods from before leases. */
async function startOldGrpc(): Promise<OldServer> {
  const server = new Server();
  const { checkStream } = grpcService(RateLimiterDefinition);
  server.register(
    checkStream.path,
    (stream: ServerDuplexStream<CheckBatchRequest, CheckBatchResponse>) => {
      stream.on("data", ({ sequence, checks }: CheckBatchRequest) => {
        const decision = Decision.create({ allowed: true });
        stream.write({ sequence, results: checks.map(() => ({ decision, error: undefined })) });
      });
      stream.on("end", () => stream.end());
      stream.on("error", () => undefined);
    },
    checkStream.responseSerialize,
    checkStream.requestDeserialize,
    "bidi",
  );
  const port = await new Promise<number>((resolve, reject) =>
    server.bindAsync("127.0.0.1:0", ServerCredentials.createInsecure(), (error, bound) =>
      error ? reject(error) : resolve(bound),
    ),
  );
  return { address: `grpc://127.0.0.1:${port}`, close: async () => server.forceShutdown() };
}

/** The same over HTTP. */
async function startOldHttp(): Promise<OldServer> {
  const server = createServer(async (request, response) => {
    let text = "";
    for await (const chunk of request) text += String(chunk);
    const known = request.url === "/v1/check" || request.url === "/readyz";
    const { checks } = text === "" ? {} : (JSON.parse(text) as { checks?: readonly unknown[] });
    const decision = { allowed: true, reason: "within_limits", cost: 1 };
    const missing = { status: 404, code: "not_found", detail: "there is nothing at this path" };
    response.writeHead(known ? 200 : 404, { "content-type": "application/json" });
    const answers = checks?.map(() => ({ status: 200, decision }));
    response.end(JSON.stringify(known ? (answers === undefined ? decision : { answers }) : missing));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    address: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    async close() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
