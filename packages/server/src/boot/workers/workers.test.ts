import { type ChildProcess, spawn } from "node:child_process";
import { copyFile, mkdtemp, readFile, rename, rm, stat, writeFile } from "node:fs/promises";
import { request } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { RedisCounters } from "@sluice/redis";
import { startServer, type TestServer } from "@sluice/test-servers";
import { createLimiter } from "sluice";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from "vitest";

const main = fileURLToPath(new URL("../../../../cli/src/main.ts", import.meta.url));
const patience = { timeout: 30_000, interval: 20 };

interface Running {
  readonly child: ChildProcess;
  readonly exited: Promise<number | null>;
  readonly output: { out: string; err: string };
}

let redis: TestServer;
/** Where started processes cache compiled code: most of a start is compiling. */
let compiled: string;
let folder: string;
let policies: string;
let running: Running[];

beforeAll(async () => {
  compiled = await mkdtemp(join(tmpdir(), "sluice-compiled-"));
  redis = await startServer({ flavor: "valkey" });
});
afterAll(async () => {
  await redis.close();
  await rm(compiled, { recursive: true, force: true });
});

async function prepare(): Promise<void> {
  folder = await mkdtemp(join(tmpdir(), "sluice-workers-"));
  policies = join(folder, "policies.yaml");
  await writeFile(policies, allowing(100));
  running = [];
}

async function clear(): Promise<void> {
  for (const { child, exited } of running) {
    // A separate group, with everything that it started. Workers outlive the first process for a while.
    if (child.pid !== undefined) killGroup(child.pid);
    await exited;
  }
  await rm(folder, { recursive: true, force: true });
}

function killGroup(pid: number): void {
  try {
    process.kill(-pid, "SIGKILL");
  } catch {
    // None is left.
  }
}

const allowing = (limit: number): string =>
  `policies: [{ id: p, limits: [{ by: [user], windows: [${limit}/h] }], on_failure: open }]\n`;

function sluice({ node = process.execPath, ...env }: Record<string, string>, ...args: string[]): Running {
  const child = spawn(node, ["-C", "source", main, "serve", ...args], {
    stdio: ["ignore", "pipe", "pipe"],
    detached: true,
    env: {
      PATH: process.env.PATH,
      NODE_COMPILE_CACHE: compiled,
      SLUICE_HTTP_PORT: "0",
      SLUICE_GRPC_PORT: "off",
      SLUICE_DEADLINE: "5s",
      ...env,
    },
  });
  const output = { out: "", err: "" };
  child.stdout.setEncoding("utf8").on("data", (text: string) => {
    output.out += text;
  });
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    output.err += text;
  });
  const started = { child, output, exited: new Promise<number | null>((resolve) => child.once("close", resolve)) };
  running.push(started);
  return started;
}

/** With counters in Redis, and logs as data. */
function readMetrics(count: string): Record<string, string> {
  const env = { SLUICE_REDIS_URL: redis.url, SLUICE_LOG_FORMAT: "json", SLUICE_LOG_LEVEL: "debug" };
  return { ...env, SLUICE_WORKERS: count, RATE_LIMIT_CONFIG: policies };
}

function workers(count: string, ...args: string[]): Running {
  return sluice(readMetrics(count), ...args);
}

type Line = { readonly level: string; readonly message: string; readonly worker?: number } & Record<string, unknown>;

function findLines({ output }: Running, message: string): Line[] {
  return output.out
    .split("\n")
    .filter((line) => line.startsWith("{") && line.endsWith("}"))
    .map((line) => JSON.parse(line) as Line)
    .filter((line) => line.message === message);
}

async function waitForUrl(server: Running): Promise<string> {
  await vi.waitFor(() => expect(findLines(server, "listening")).toHaveLength(1), patience);
  const [{ http }] = findLines(server, "listening") as [Line];
  return (http as string[])[0]!;
}

/** On a separate connection, so that any of the workers may get it. */
function ask(
  target: { url: string; socketPath?: string },
  path: string,
  body?: object,
): Promise<{ status: number; text: string }> {
  return new Promise((resolve, reject) => {
    const asked = request(
      new URL(path, target.url),
      {
        agent: false,
        method: body === undefined ? "GET" : "POST",
        headers: { "content-type": "application/json" },
        ...(target.socketPath === undefined ? undefined : { socketPath: target.socketPath }),
      },
      (response) => {
        let text = "";
        response.setEncoding("utf8").on("data", (chunk: string) => {
          text += chunk;
        });
        response.once("end", () => resolve({ status: response.statusCode ?? 0, text }));
        response.once("error", reject);
      },
    );
    asked.once("error", reject);
    asked.end(body === undefined ? undefined : JSON.stringify(body));
  });
}

/** The workers in a page of metrics. */
async function workersIn(url: string): Promise<string[]> {
  const { text } = await ask({ url }, "/metrics");
  return [...new Set([...text.matchAll(/^sluice_build_info\{.*worker="(\d+)"/gm)].map(([, number]) => number!))].sort();
}

/** Processes that were started for a worker, in turn. */
function findPids(server: Running, number: number): number[] {
  return findLines(server, "worker started").flatMap(({ worker, pid }) =>
    worker === number && typeof pid === "number" ? [pid] : [],
  );
}

const crashed = "worker ended unexpectedly; another takes its place";
const ended = "worker ended";
const killed = "worker did not stop in time and was killed";

/** One server for all of them, which each leaves as it found it; the last one stops it. */
describe("several workers, one after another,", () => {
  let server: Running;
  let url: string;
  /** A copy, so that it can be removed. */
  let node: string;

  beforeAll(async () => {
    await prepare();
    node = join(folder, "node");
    await copyFile(process.execPath, node);
    server = sluice({ ...readMetrics("3"), node }, "--drain", "10m");
    url = await waitForUrl(server);
  }, 120_000);
  afterAll(clear);

  it("share a port, a greeting and the counters, and answer for one another's metrics", async () => {
    expect(findLines(server, "listening")[0]).toMatchObject({ workers: 3, counters: redis.url });
    await expect.poll(async () => (await ask({ url }, "/readyz?strict")).status, patience).toBe(200);
    const answers = await Promise.all(
      Array.from({ length: 30 }, () => ask({ url }, "/v1/check", { dimensions: { user: folder } })),
    );
    const remaining = answers.map(({ text }) => (JSON.parse(text) as { remaining: number }).remaining);
    expect(remaining.sort((a, b) => b - a)).toEqual(Array.from({ length: 30 }, (_, index) => 99 - index));
    for (let time = 0; time < 4; time += 1) expect(await workersIn(url)).toEqual(["1", "2", "3"]);
    const counts = async (): Promise<number[]> => {
      const page = (await ask({ url }, "/metrics")).text;
      const found = page.matchAll(/^sluice_http_requests_total\{.*route="\/v1\/check".*\} (\d+)$/gm);
      return [...found].map(([, count]) => Number(count));
    };
    await expect.poll(async () => (await counts()).reduce((sum, count) => sum + count, 0), patience).toBe(30);
    expect((await counts()).length).toBeGreaterThan(1);
    const { text } = await ask({ url }, "/metrics");
    expect(text.match(/^# TYPE sluice_build_info /gm)).toHaveLength(1);
  }, 120_000);

  it("answer for one another's hot keys", async () => {
    const told = async (): Promise<unknown> => {
      const check = { dimensions: { user: `${folder} hot` } };
      await Promise.all(Array.from({ length: 30 }, () => ask({ url }, "/v1/check", { checks: [check, check] })));
      const { text } = await ask({ url }, "/v1/hot-keys?count=1");
      const { nodes, items } = JSON.parse(text) as { nodes: { reported: number }; items: { nodes: number }[] };
      return [nodes.reported, items[0]?.nodes];
    };
    await expect.poll(told, patience).toEqual([3, 3]);
  }, 120_000);

  it("all reload on SIGHUP", async () => {
    await writeFile(policies, allowing(7));
    server.child.kill("SIGHUP");
    const reloaded = (): unknown[] =>
      [...new Set(findLines(server, "policies reloaded").map(({ worker }) => worker))].sort();
    await expect.poll(reloaded, patience).toEqual([1, 2, 3]);
    const { text } = await ask({ url }, "/v1/check", { dimensions: { user: `${folder} again` } });
    expect(JSON.parse(text)).toMatchObject({ limit: 7 });
  }, 120_000);

  it("leave workers that do not answer out of metrics", async () => {
    const [second] = findPids(server, 2);
    process.kill(second!, "SIGSTOP");
    try {
      // Every third connection goes to the one that stands still, and waits there.
      const pages = await Promise.race([workersIn(url), workersIn(url)]);
      expect(pages).toEqual(["1", "3"]);
    } finally {
      process.kill(second!, "SIGCONT");
    }
  }, 120_000);

  it("are replaced when they crash, while the others serve, as soon as a process can be started", async () => {
    const failures = (): Line[] => findLines(server, "worker could not start; trying again");
    const [first] = findPids(server, 2);
    await rename(node, `${node}.old`);
    process.kill(first!, "SIGKILL");
    await expect.poll(() => failures().length, patience).toBeGreaterThan(1);
    expect(failures()[0]).toMatchObject({ level: "error", worker: 2, reason: expect.stringContaining("ENOENT") });
    for (let time = 0; time < 3; time += 1) expect((await ask({ url }, "/livez")).status).toBe(200);
    await rename(`${node}.old`, node);
    await expect.poll(() => findPids(server, 2).length, patience).toBe(2);
    await expect.poll(() => workersIn(url), patience).toEqual(["1", "2", "3"]);
    expect(findLines(server, crashed)).toMatchObject([{ level: "error", worker: 2, signal: "SIGKILL" }]);
  }, 120_000);

  it("drain when a terminal interrupts all of them, and end at once at the second signal", async () => {
    process.kill(-server.child.pid!, "SIGINT");
    // Each gets it from the terminal and from the first process. If that counted as two signals, they would be gone.
    await expect.poll(async () => (await ask({ url }, "/readyz")).status, patience).toBe(503);
    for (let time = 0; time < 4; time += 1) expect((await ask({ url }, "/livez")).status).toBe(200);
    // One that hangs does not get it, and is not waited for.
    process.kill(findPids(server, 2).at(-1)!, "SIGSTOP");
    server.child.kill("SIGTERM");
    const endedWorkers = (): number[] => findLines(server, ended).map(({ worker }) => worker!);
    await expect.poll(() => endedWorkers().sort(), patience).toEqual([1, 3]);
    // A third signal does not wait for it.
    server.child.kill("SIGTERM");
    expect(await server.exited).toBe(0);
    expect(findLines(server, ended).sort((a, b) => a.worker! - b.worker!)).toMatchObject([
      { worker: 1, code: 0 },
      { worker: 2, signal: "SIGKILL" },
      { worker: 3, code: 0 },
    ]);
    expect(findLines(server, killed)).toMatchObject([{ worker: 2 }]);
    expect(findLines(server, "stopped")).toMatchObject([{ signal: "SIGINT" }]);
    expect(findLines(server, crashed)).toHaveLength(1);
    expect(findLines(server, "listening")).toHaveLength(1);
    expect(server.output.err).toBe("");
  }, 120_000);
});

describe("several workers", () => {
  beforeEach(prepare);
  afterEach(clear);

  it("greet once, share a unix socket, and end when the process that started them is killed", async () => {
    const socketPath = join(folder, "http.sock");
    const env = { SLUICE_REDIS_URL: redis.url, SLUICE_LOG_LEVEL: "debug" };
    const args = ["--workers", "2", "--config", policies, "--http-socket", socketPath];
    const server = sluice(env, ...args);
    await expect.poll(() => server.output.out, patience).toMatch(/listens on http:[\s\S]*-d '/);
    await expect.poll(() => server.output.err, patience).toMatch(/connected to a counter server.* worker=[12]/);
    expect(server.output.out.match(/listens on/g)).toHaveLength(1);
    expect(server.output.err.match(/ info +listening /g)).toHaveLength(1);
    expect((await stat(socketPath)).mode & 0o777).toBe(0o660);
    // From its first moment on: the first process makes it.
    expect(await readFile(`/proc/${server.child.pid}/status`, "utf8")).toContain("Umask:\t0117\n");

    const twin = workers("2", "--http-socket", socketPath);
    expect(await twin.exited).toBe(2);
    expect(twin.output.err).toContain(`cannot listen on ${socketPath}: another process listens there already`);

    const pids = [...server.output.err.matchAll(/worker started .*pid=(\d+)/g)].map(([, pid]) => Number(pid));
    expect(pids).toHaveLength(2);
    server.child.kill("SIGKILL");
    await server.exited;
    const alive = (): number[] => pids.filter(isAlive);
    await expect.poll(alive, patience).toEqual([]);

    // The socket is still there, but without a listener.
    expect((await stat(socketPath)).isSocket()).toBe(true);
    const next = workers("2", "--http-socket", socketPath);
    await waitForUrl(next);
    for (let time = 0; time < 4; time += 1)
      expect((await ask({ url: "http://localhost", socketPath }, "/livez")).status).toBe(200);
    next.child.kill("SIGTERM");
    expect(await next.exited).toBe(0);
    expect(findLines(next, "stopped")).toMatchObject([{ signal: "SIGTERM" }]);
    await expect(stat(socketPath)).rejects.toThrow("ENOENT");
  }, 120_000);

  it("lease separately, with metrics that add up, and give back when they stop", async () => {
    const leased = { id: "p", limits: [{ by: ["user"], windows: ["1000000/h"] }], counters: "leased" };
    await writeFile(policies, JSON.stringify({ policies: [leased] }));
    const server = workers("2");
    const url = await waitForUrl(server);
    await expect.poll(async () => (await ask({ url }, "/readyz?strict")).status, patience).toBe(200);
    const check = { dimensions: { user: folder } };
    let asked = 0;
    let page = "";
    const leases = async (): Promise<string[]> => {
      // Workers take turns.
      for (let time = 0; time < 2; time += 1)
        await ask({ url }, "/v1/check", { checks: Array.from({ length: 50 }, () => check) });
      asked += 100;
      page = (await ask({ url }, "/metrics")).text;
      return [...page.matchAll(/^sluice_leases\{worker="(\d)"\} 1$/gm)].map(([, worker]) => worker!).sort();
    };
    await expect.poll(leases, patience).toEqual(["1", "2"]);
    const decisions = [...page.matchAll(/^sluice_lease_decisions_total\{.*\} (\d+)$/gm)].map(([, count]) =>
      Number(count),
    );
    expect(decisions).toHaveLength(6);
    expect(decisions.reduce((sum, count) => sum + count, 0)).toBe(asked);

    server.child.kill("SIGTERM");
    expect(await server.exited).toBe(0);
    expect(
      findLines(server, "leases returned")
        .map(({ worker }) => worker)
        .sort(),
    ).toEqual([1, 2]);
    const limiter = createLimiter({
      policies: { policies: [leased] },
      counters: new RedisCounters({ servers: redis.url }),
    });
    try {
      expect(await limiter.lease(check, { want: 0, holdMs: 1_000 })).toMatchObject({ granted: 0, unspent: 0 });
    } finally {
      await limiter.close();
    }
  }, 120_000);

  it("stop in order when asked to while they start", async () => {
    const server = workers("2");
    await expect.poll(() => findLines(server, "worker started").length, { ...patience, interval: 1 }).toBe(1);
    server.child.kill("SIGTERM");
    expect(await server.exited).toBe(0);
    expect(findLines(server, "stopped")).toHaveLength(1);
    expect(findLines(server, killed)).toEqual([]);
  }, 120_000);

  it("are given up if none of them can start any longer", async () => {
    const server = workers("2");
    await waitForUrl(server);
    await writeFile(policies, "policies: 7\n");
    for (const { pid } of findLines(server, "worker started")) process.kill(pid as number, "SIGKILL");
    expect(await server.exited).toBe(2);
    expect(server.output.err).toContain("the workers end as soon as they start, and are not started again");
  }, 120_000);

  it("are refused if counters are in memory, with what to do instead", async () => {
    const servers = ["2", "64"].map((count) => sluice({}, "--workers", count, "--config", policies));
    for (const server of servers) {
      expect(await server.exited).toBe(2);
      expect(server.output.err).toMatch(/^SLUICE_WORKERS \(--workers\): counters in memory belong to one process/);
      expect(server.output.err).toContain("set SLUICE_REDIS_URL (--redis)");
      expect(server.output.out).toBe("");
    }
  }, 120_000);

  it("report once what keeps them from starting", async () => {
    await writeFile(policies, "policies: 7\n");
    const server = workers("4");
    expect(await server.exited).toBe(2);
    expect(server.output.err.match(/policies: must be/g)).toHaveLength(1);
    expect(findLines(server, "worker started")).toHaveLength(1);
  }, 120_000);
});

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}
