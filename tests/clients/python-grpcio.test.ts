import { type ChildProcessByStdio, spawn } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { createInterface } from "node:readline";
import type { Readable, Writable } from "node:stream";
import { fileURLToPath } from "node:url";
import { createLogger, type Daemon, parseSettings, startDaemon } from "@sluice/server";
import { afterAll, beforeAll, describe, expect, it } from "vitest";

/** Debian's Python, which its package of grpcio is for. */
const python = "/usr/bin/python3";
const script = fileURLToPath(new URL("ask_by_reflection.py", import.meta.url));

const policies = `
policies:
  - id: calls
    version: 3
    limits: [{ by: [user], windows: 2/h }]
  - id: jobs
    domain: jobs
    limits: [{ by: [user], windows: 100000/h }]
`;

let folder: string;
let daemon: Daemon;
let client: ChildProcessByStdio<Writable, Readable, null>;
let lines: AsyncIterator<string>;
let services: readonly string[];

beforeAll(async () => {
  folder = mkdtempSync(path.join(tmpdir(), "sluice-python-"));
  const config = path.join(folder, "policies.yaml");
  writeFileSync(config, policies);
  const reading = parseSettings({}, { httpPort: "0", grpcPort: "0", config });
  if (reading.kind !== "settings") throw new Error(JSON.stringify(reading));
  const { stdout, stderr } = process;
  const log = createLogger({ level: "silent", format: "text", stdout, stderr });
  daemon = await startDaemon({ settings: reading.settings, log });
  const address = daemon.addresses.grpc[0]!.replace("grpc://", "");
  client = spawn(python, [script, address], { stdio: ["pipe", "pipe", "inherit"] });
  lines = createInterface({ input: client.stdout })[Symbol.asyncIterator]();
  services = ((await read()) as { services: readonly string[] }).services;
});

afterAll(async () => {
  client?.stdin.end();
  await daemon?.close();
  rmSync(folder, { recursive: true, force: true });
});

async function read(): Promise<unknown> {
  const { value, done } = await lines.next();
  if (done === true) throw new Error("python has ended");
  return JSON.parse(value);
}

interface Question {
  readonly method: string;
  readonly request: unknown;
  readonly token?: string;
  readonly stream?: boolean;
}

async function ask(question: Question): Promise<unknown> {
  client.stdin.write(`${JSON.stringify(question)}\n`);
  return read();
}

describe("a client in Python that knows only the address", () => {
  it("finds every service by reflection", () => {
    expect(services).toEqual([
      "envoy.service.ratelimit.v3.RateLimitService",
      "grpc.health.v1.Health",
      "grpc.reflection.v1.ServerReflection",
      "ratelimiter.v1.RateLimiterService",
      "sluice.v1.PolicyAdmin",
      "sluice.v1.RateLimiter",
    ]);
  });

  it("checks, is denied, and learns why", async () => {
    const question = { method: "sluice.v1.RateLimiter/Check", request: { dimensions: { user: "ada" }, cost: 2 } };
    expect(await ask(question)).toMatchObject({
      answer: { allowed: true, reason: "REASON_WITHIN_LIMITS", policy: "calls", version: "3", limit: 2, remaining: 0 },
    });
    const denied = (await ask(question)) as { answer: Record<string, unknown> };
    expect(denied.answer).toMatchObject({
      reason: "REASON_OVER_LIMIT",
      remaining: 0,
      used: 2,
      state: "STATE_THROTTLED",
    });
    expect(denied.answer.allowed).toBeUndefined();
    expect(Number(denied.answer.retry_after_ms)).toBeGreaterThan(0);
  });

  it("streams batches, and gets errors for bad checks among good ones", async () => {
    const check = (user: string, cost = 1): unknown => ({ dimensions: { user }, cost });
    const request = [
      { sequence: 1, checks: [check("bob"), check("bob"), check("bob")] },
      { sequence: 2, checks: [check("eve"), check("eve", -1)] },
    ];
    expect(await ask({ method: "sluice.v1.RateLimiter/CheckStream", request, stream: true })).toMatchObject({
      answers: [
        { sequence: 1, results: [{ decision: { allowed: true } }, { decision: { allowed: true } }, { decision: {} }] },
        { sequence: 2, results: [{ decision: { allowed: true } }, { error: { code: "invalid_request" } }] },
      ],
    });
  });

  it("speaks the other services: a leaky bucket's, Envoy's and health", async () => {
    const consume = { method: "ratelimiter.v1.RateLimiterService/ConsumeAndCheckLimit", request: { limit_key: "k" } };
    expect(await ask(consume)).toMatchObject({ answer: { allowed: true } });
    const descriptors = [{ entries: [{ key: "user", value: "zoe" }] }];
    const envoy = "envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit";
    expect(await ask({ method: envoy, request: { domain: "none", descriptors } })).toMatchObject({
      answer: { overall_code: "OK" },
    });
    const health = { method: "grpc.health.v1.Health/Check", request: { service: "ratelimit" } };
    expect(await ask(health)).toEqual({ answer: { status: "SERVING" } });
  });

  it("leases, renews and gives back", async () => {
    const method = "sluice.v1.RateLimiter/Lease";
    const check = { domain: "jobs", dimensions: { user: "ada" } };
    const lease = async (request: object): Promise<Readonly<Record<string, unknown>>> =>
      ((await ask({ method, request: { check, ...request } })) as { answer: Readonly<Record<string, unknown>> }).answer;
    const first = await lease({ want: 100 });
    expect(first).toMatchObject({ granted: 100, unspent: "100", stale_ms: 60_000, cost: 1 });
    const second = await lease({ want: 50, settled: { epoch: first.epoch, spent: 70, kept: 30 } });
    expect(second).toMatchObject({ granted: 50, unspent: "80", decision: { policy: "jobs", limit: 100_000 } });
    const last = await lease({ settled: { epoch: second.epoch, spent: 10, returned: 70 } });
    expect([last.granted, last.unspent]).toEqual([undefined, undefined]);
    expect(await ask({ method, request: { check: { ...check, cost: 1 }, want: 1 } })).toMatchObject({
      code: "INVALID_ARGUMENT",
      details: expect.stringContaining("check.cost"),
    });
    expect(await ask({ method, request: { check: { dimensions: { user: "ada" } }, want: 0 } })).toMatchObject({
      sluice_code: "invalid_request",
    });
  });

  it("gets precise errors: a field, a policy, a role", async () => {
    const method = "sluice.v1.RateLimiter/Check";
    expect(await ask({ method, request: { dimensions: { ip: "x" } } })).toEqual({
      code: "INVALID_ARGUMENT",
      details: expect.stringContaining("dimensions.ip must be an IP address"),
      sluice_code: "invalid_request",
    });
    const many = Array.from({ length: 32 }, (_, i) => [`${"名".repeat(100)}${i}`, "x".repeat(5_000)]);
    expect(await ask({ method, request: { dimensions: Object.fromEntries(many) } })).toMatchObject({
      code: "INVALID_ARGUMENT",
      sluice_code: "invalid_request",
    });
    expect(await ask({ method, request: { policies: ["nowhere"] } })).toMatchObject({
      code: "NOT_FOUND",
      sluice_code: "policy_not_found",
    });
    const reset = { method: "sluice.v1.RateLimiter/ResetKey", request: { policy_id: "calls" } };
    expect(await ask(reset)).toMatchObject({ code: "PERMISSION_DENIED", sluice_code: "permission_denied" });
  });
});
