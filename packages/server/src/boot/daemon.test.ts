import { execFileSync } from "node:child_process";
import { mkdir, mkdtemp, rename, rm, symlink, writeFile } from "node:fs/promises";
import { Agent, request } from "node:http";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { SluiceError } from "sluice";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { parseSettings } from "../settings/parse-settings.ts";
import type { Settings } from "../settings/settings.ts";
import { createRecordingLog } from "../testing/recording-log.ts";
import { type Daemon, type DaemonOptions, startDaemon } from "./daemon.ts";

let folder: string;
let file: string;
let daemon: Daemon | undefined;
let logged: { level: string; fields: Record<string, unknown>; message: string }[];

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "sluice-daemon-"));
  file = join(folder, "policies.yaml");
  logged = [];
});

afterEach(async () => {
  await daemon?.close();
  daemon = undefined;
  await rm(folder, { recursive: true, force: true });
});

const log = createRecordingLog((line) => logged.push(line));

const allowing = (limit: number): string =>
  `policies: [{ id: p, limits: [{ by: [user], windows: [${limit}/h] }], on_failure: open }]\n`;

/** Saves as careful editors do: no reader ever finds half a file. */
async function save(text: string): Promise<void> {
  await writeFile(join(folder, ".next"), text);
  await rename(join(folder, ".next"), file);
}

async function start(
  config: string | undefined,
  options: Partial<DaemonOptions> = {},
  flags: Parameters<typeof parseSettings>[1] = {},
): Promise<Daemon> {
  const reading = parseSettings({}, { httpPort: "0", grpcPort: "off", config, ...flags });
  if (reading.kind === "problems") throw new Error("settings");
  const settings: Settings = reading.settings;
  daemon = await startDaemon({ settings, log, watch: { quietMs: 10, pollMs: 3_600_000 }, ...options });
  return daemon;
}

async function get(path: string): Promise<Record<string, unknown>> {
  return (await (await fetch(`${daemon?.url}${path}`)).json()) as Record<string, unknown>;
}

async function limitNow(): Promise<unknown> {
  const response = await fetch(`${daemon?.url}/v1/check`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ dimensions: { user: "u" }, preview: true }),
  });
  return ((await response.json()) as Record<string, unknown>).limit;
}

async function expectLimit(limit: number): Promise<void> {
  await expect.poll(limitNow, { timeout: 30_000, interval: 10 }).toBe(limit);
}

describe("a running server", () => {
  it("applies a changed file", async () => {
    await save(allowing(5));
    await start(file);
    expect(await limitNow()).toBe(5);
    await save(allowing(7));
    await expectLimit(7);
    expect(await get("/readyz")).toMatchObject({ config: "current", generation: 2 });
  });

  it("applies what Kubernetes mounts anew", async () => {
    const mount = async (version: string, limit: number): Promise<void> => {
      await mkdir(join(folder, `..${version}`));
      await writeFile(join(folder, `..${version}`, "policies.yaml"), allowing(limit));
      await symlink(`..${version}`, join(folder, "..next"));
      await rename(join(folder, "..next"), join(folder, "..data"));
    };
    await mount("one", 5);
    await symlink(join("..data", "policies.yaml"), file);
    await start(folder);
    expect(await limitNow()).toBe(5);
    await mount("two", 7);
    await expectLimit(7);
    await rm(join(folder, "..one"), { recursive: true });
    await mount("three", 9);
    await expectLimit(9);
  });

  it("keeps the last good policies when a file goes bad, says so everywhere, and recovers", async () => {
    await save(allowing(5));
    await start(file);
    await save("policies:\n  - id: p\n    limts: []\n");
    await expect.poll(() => get("/readyz"), { timeout: 30_000, interval: 10 }).toMatchObject({ config: "stale" });
    const ready = await fetch(`${daemon?.url}/readyz`);
    expect(ready.status).toBe(200);
    const { problems, status } = (await ready.json()) as { problems: string[]; status: string };
    expect(status).toBe("ready");
    expect(problems.join("\n")).toContain(`${file}:3:5 policies[0].limts`);
    expect(await limitNow()).toBe(5);
    const errors = logged.filter((one) => one.level === "error");
    expect(errors).toHaveLength(1);
    expect(errors[0]?.fields.problems).toMatchObject([{ place: { file, line: 3, column: 5 } }]);
    const metrics = await (await fetch(`${daemon?.url}/metrics`)).text();
    expect(metrics).toContain("\nsluice_config_reload_failures_total 1\n");
    expect(metrics).toContain("\nsluice_config_last_reload_successful 0\n");
    expect(metrics).toContain("\nsluice_config_generation 1\n");

    await save(allowing(7));
    await expectLimit(7);
    expect(await get("/readyz")).toMatchObject({ config: "current", generation: 2 });
    expect(await (await fetch(`${daemon?.url}/metrics`)).text()).toContain(
      "\nsluice_config_last_reload_successful 1\n",
    );
  });

  it("is current again, at the same generation, when a bad file is put back as it was", async () => {
    await save(allowing(5));
    await start(file);
    await save("[");
    await expect.poll(() => get("/readyz"), { timeout: 30_000, interval: 10 }).toMatchObject({ config: "stale" });
    await save(allowing(5));
    await expect.poll(() => get("/readyz"), { timeout: 30_000, interval: 10 }).toMatchObject({ config: "current" });
    expect(await get("/readyz")).toMatchObject({ generation: 1 });
  });

  it("keeps the last good policies while the file is gone", async () => {
    await save(allowing(5));
    await start(file);
    await rm(file);
    await expect.poll(() => get("/readyz"), { timeout: 30_000, interval: 10 }).toMatchObject({ config: "stale" });
    expect(await limitNow()).toBe(5);
    await save(allowing(7));
    await expectLimit(7);
  });

  it("does not reload an unchanged file, and reports a failure once", async () => {
    await save(allowing(5));
    const { reload } = await start(file);
    await save(allowing(5));
    await reload();
    expect(await get("/readyz")).toMatchObject({ generation: 1 });
    await save("[");
    await reload();
    await reload();
    expect(logged.filter((one) => one.level === "error")).toHaveLength(1);
  });

  it("keeps counters through a reload", async () => {
    await save(allowing(5));
    const { reload, limiter } = await start(file);
    await limiter.check({ dimensions: { user: "u" }, cost: 3 });
    await save(allowing(10));
    await reload();
    const { remaining, limit } = await limiter.check({ dimensions: { user: "u" }, preview: true });
    expect(limit).toBe(10);
    expect(remaining).toBeLessThan(10);
  });

  it("logs the first twenty problems of a bad file, and how many there are", async () => {
    await save(allowing(5));
    const { reload } = await start(file);
    await save(`policies:\n${"  - { id: p, limts: [] }\n".repeat(30)}`);
    await reload();
    const [error] = logged.filter((one) => one.level === "error");
    expect(error?.fields.problems).toHaveLength(20);
    expect(error?.fields.errors).toBeGreaterThan(20);
  });

  it("does not wait for a pipe under the name of a policy file, and says that it is not a file", async () => {
    await save(allowing(5));
    const { reload } = await start(folder);
    execFileSync("mkfifo", [join(folder, "pipe.yaml")]);
    await reload();
    expect(await get("/readyz")).toMatchObject({
      config: "stale",
      problems: [expect.stringMatching(/pipe\.yaml is neither a file nor a folder/)],
    });
    await rm(join(folder, "pipe.yaml"));
    await save(allowing(7));
    await reload();
    expect(await limitNow()).toBe(7);
  });

  it("counts requests by the labels of the policies in force", async () => {
    const named = (id: string): string => `policies: [{ id: ${id}, limits: [{ by: [user], windows: [9/h] }] }]\n`;
    await save(named("old"));
    const { reload } = await start(file);
    const check = async (): Promise<string> => {
      const body = JSON.stringify({ dimensions: { user: "u" } });
      await fetch(`${daemon?.url}/v1/check`, { method: "POST", headers: { "content-type": "application/json" }, body });
      return (await fetch(`${daemon?.url}/metrics`)).text();
    };
    expect(await check()).toContain('sluice_checks_total{policy="old",domain="default",version="1",allowed="true"} 1');
    await save(named("new"));
    await reload();
    const metrics = await check();
    expect(metrics).toContain('sluice_checks_total{policy="new",domain="default",version="1",allowed="true"} 1');
    expect(metrics).not.toContain('policy="old"');
  });

  it("does not start on bad policies, and reports every problem", async () => {
    await save("policies:\n  - id: p\n  - limits: 7\n");
    const failure: unknown = await start(file).catch((error: unknown) => error);
    expect(failure).toBeInstanceOf(SluiceError);
    expect((failure as SluiceError).problems.length).toBeGreaterThanOrEqual(2);
  });

  it("runs on the default policy if no file is named", async () => {
    await start(undefined);
    expect(await limitNow()).toBe(1000);
    expect(await get("/readyz")).toMatchObject({ status: "ready", config: "current", policies: 0 });
  });

  it("says which settings of the rate_limits format have no effect", async () => {
    await save(
      "rate_limits: [{ name: a, scope: user, resource: api, capacity: 5, refill_rate: 1 }]\nruntime: { redis: { db: 1 }, health_check: {} }\n",
    );
    await start(file);
    expect(logged.find((one) => "settings" in one.fields)?.fields.settings).toEqual(["redis.db", "health_check"]);
    const response = await fetch(`${daemon?.url}/v1/rate-limit`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ identifier: "u", resource: "api" }),
    });
    expect(await response.json()).toMatchObject({ allowed: true, tokens_capacity: 5, tokens_remaining: 4 });
  });
});

describe("closing", () => {
  it("finishes a request in flight and closes its connection, and others at once", async () => {
    await save(allowing(5));
    const { url, close } = await start(file);
    const agent = new Agent({ keepAlive: true });
    const { hostname, port } = new URL(url);

    await new Promise<void>((resolve, reject) => {
      request(`${url}/livez`, { agent }, (response) => response.resume().on("end", resolve))
        .on("error", reject)
        .end();
    });
    const silent = connect(Number(port), hostname);
    await new Promise((resolve) => silent.once("connect", resolve));
    const silentClosed = new Promise((resolve) => silent.once("close", resolve));
    silent.on("error", () => {});

    const body = JSON.stringify({ dimensions: { user: "u" } });
    const inFlight = request(`${url}/v1/check`, {
      method: "POST",
      agent: new Agent({ keepAlive: true }),
      headers: { "content-type": "application/json", "content-length": body.length, expect: "100-continue" },
    });
    const answered = new Promise<{ status: number | undefined; connection: string | undefined }>((resolve, reject) => {
      inFlight.on("response", (response) => {
        response.resume();
        resolve({ status: response.statusCode, connection: response.headers.connection });
      });
      inFlight.on("error", reject);
    });
    // The server says "go on" once it has the headers: from then on the request is in flight.
    await new Promise((resolve) => inFlight.once("continue", resolve).flushHeaders());

    const closed = close();
    await silentClosed;
    await expect(fetch(`${url}/livez`)).rejects.toThrow();
    inFlight.end(body);
    expect(await answered).toEqual({ status: 200, connection: "close" });
    await closed;
    agent.destroy();
  });

  it("does not wait for half a request line", async () => {
    const { url, close } = await start(undefined, { closeWithinMs: 3_600_000 });
    const { hostname, port } = new URL(url);
    const half = connect(Number(port), hostname).on("error", () => {});
    const halfClosed = new Promise((resolve) => half.once("close", resolve));
    half.write("GET /livez HTTP/1.1\r\nhost: a\r\n\r\nGET /li");
    await new Promise((resolve) => half.once("data", resolve));
    await close();
    await halfClosed;
  });

  it("keeps accepting while it drains, and is not ready", async () => {
    let drained = (): void => {};
    const waited: number[] = [];
    const pause = (ms: number): Promise<void> => {
      waited.push(ms);
      return new Promise((resolve) => {
        drained = resolve;
      });
    };
    const { url, close } = await start(undefined, { pause }, { drainMs: "15s" });
    const closed = close();
    expect((await fetch(`${url}/readyz`)).status).toBe(503);
    expect((await fetch(`${url}/livez`)).status).toBe(200);
    expect(waited).toEqual([15_000]);
    drained();
    await closed;
    await expect(fetch(`${url}/livez`)).rejects.toThrow();
  });

  it("cuts off what does not finish in time", async () => {
    await save(allowing(5));
    const { url, close } = await start(file, { closeWithinMs: 50 });
    const stuck = request(`${url}/v1/check`, {
      method: "POST",
      headers: { "content-type": "application/json", "content-length": 100, expect: "100-continue" },
    });
    const failed = new Promise((resolve) => stuck.once("error", resolve));
    await new Promise((resolve) => stuck.once("continue", resolve).flushHeaders());
    await close();
    await failed;
    expect(logged.find((one) => one.level === "warn")?.fields).toEqual({ connections: 1 });
  });
});
