import { startServer, type TestServer } from "@sluice/test-servers";
import { limit } from "sluice";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { OutageWarnings } from "./outage-warnings.ts";
import { redis } from "./redis.ts";
import type { RedisCounters } from "./redis-counters.ts";
import type { RedisCountersOptions } from "./redis-counters-options.ts";
import type { RedisEvent } from "./site.ts";

const soon = { timeout: 30_000, interval: 20 };
const secret = "hunter2hunter2";

let server: TestServer;
const opened: RedisCounters[] = [];
const warnings: (Error & { code?: string })[] = [];
const listener = (warning: Error): void => {
  if (warning.name === "SluiceWarning") warnings.push(warning);
};

beforeAll(async () => {
  server = await startServer({ flavor: "valkey" });
});
afterAll(() => server.close());
beforeEach(() => {
  warnings.length = 0;
  process.on("warning", listener);
});
afterEach(async () => {
  for (const counters of opened.splice(0)) await counters.close();
  process.off("warning", listener);
});

function open(url: string, options: Omit<RedisCountersOptions, "servers"> = {}): RedisCounters {
  const counters = redis(url, { deadlineMs: 200, ...options });
  opened.push(counters);
  return counters;
}

const ask = (counters: RedisCounters): Promise<{ readonly degraded: unknown }> =>
  limit("100/s", { name: "api", counters }).by("user").check("ada");

describe("an outage of Redis, in an app that listens to no events", () => {
  it("is one warning when it begins and one when it ends, however many requests come", async () => {
    const counters = open(server.url);
    expect((await ask(counters)).degraded).toBeUndefined();
    await server.kill();
    for (let i = 0; i < 20; i++) await ask(counters);
    await expect.poll(() => warnings.length, soon).toBe(1);
    expect(warnings[0]).toMatchObject({ code: "SLUICE_OUTAGE", name: "SluiceWarning" });
    expect(warnings[0]!.message).toMatch(
      new RegExp(`^redis://127.0.0.1:${server.port} is unavailable \\(.+\\)\\. .*requests pass without being counted`),
    );
    await server.restart();
    await expect.poll(() => warnings.length, soon).toBe(2);
    expect(warnings[1]!.message).toMatch(/ is available again, after \d+ s; requests are counted again$/);
    expect((await ask(counters)).degraded).toBeUndefined();
    expect(warnings).toHaveLength(2);
  });

  it("is reported if the server was never there, and never with the password", async () => {
    await ask(open(`redis://user:${secret}@127.0.0.1:1`));
    await expect.poll(() => warnings.length, soon).toBe(1);
    expect(warnings[0]!.message).toMatch(/^redis:\/\/127\.0\.0\.1:1 is unavailable \(.*ECONNREFUSED/);
    expect(warnings[0]!.message).not.toContain(secret);
  });

  it("is reported if the password is wrong, without it", async () => {
    await ask(open(`redis://user:${secret}@127.0.0.1:${server.port}`));
    await expect.poll(() => warnings.length, soon).toBe(1);
    expect(warnings[0]!.message).toMatch(/is unavailable \(WRONGPASS: check the user and password\)/);
    expect(warnings[0]!.message).not.toContain(secret);
  });

  it("is silent if the app listens, or says so", async () => {
    const events: RedisEvent[] = [];
    await ask(open("redis://127.0.0.1:1", { onEvent: (event) => events.push(event) }));
    await ask(open("redis://127.0.0.1:1", { warn: false }));
    await expect.poll(() => events.length, soon).toBeGreaterThan(0);
    // The next one, which does warn, comes after those warnings would have.
    await ask(open("redis://127.0.0.1:2"));
    await expect.poll(() => warnings.length, soon).toBe(1);
    expect(warnings[0]!.message).toMatch(/^redis:\/\/127\.0\.0\.1:2 /);
  });

  it("does both if asked to", async () => {
    const events: RedisEvent[] = [];
    await ask(open("redis://127.0.0.1:1", { onEvent: (event) => events.push(event), warn: true }));
    await expect.poll(() => warnings.length, soon).toBe(1);
    expect(events[0]).toMatchObject({ kind: "disconnected" });
  });
});

describe("warnings of outages", () => {
  const create = (): { told: string[]; state: { ready: boolean; nowMs: number }; warnings: OutageWarnings } => {
    const told: string[] = [];
    const state = { ready: false, nowMs: 0 };
    const warnings = new OutageWarnings({
      servers: "redis://a:1",
      secrets: ["", secret],
      ready: () => state.ready,
      nowMs: () => state.nowMs,
      warn: (message) => told.push(message),
    });
    return { told, state, warnings };
  };
  const lost = (message: string): RedisEvent => ({ kind: "disconnected", shard: "a:1", error: new Error(message) });

  it("end when the breaker closes, and not with a connection alone", () => {
    const { told, state, warnings } = create();
    warnings.onEvent({ kind: "breaker", shard: "a:1", state: "open", why: "5 failures in a row" });
    warnings.onEvent({ kind: "connected", shard: "a:1" });
    expect(told).toHaveLength(1);
    state.ready = true;
    state.nowMs = 90_000;
    warnings.onEvent({ kind: "breaker", shard: "a:1", state: "closed", why: "a probe succeeded" });
    expect(told[1]).toMatch(/after 90 s/);
  });

  it("name a refusing server's code once a minute, and nothing that it repeats", () => {
    const { told, state, warnings } = create();
    const refused: RedisEvent = {
      kind: "failed",
      shard: "a:1",
      error: new Error(`OOM command '${secret}' not allowed`),
    };
    for (let i = 0; i < 5; i++) warnings.onEvent(refused);
    expect(told).toEqual(["redis://a:1 refuses calls (OOM); each policy's on_failure answers for them"]);
    state.nowMs = 60_000;
    warnings.onEvent(refused);
    expect(told).toHaveLength(2);
  });

  it("are bounded in number and length, and hold no secret and nothing that a terminal obeys", () => {
    const { told, state, warnings } = create();
    for (let i = 0; i < 100; i++) {
      state.ready = false;
      warnings.onEvent(lost(`no ${secret} \u001b[31m ${"x".repeat(10_000)}`));
      state.ready = true;
      warnings.onEvent({ kind: "connected", shard: "a:1" });
    }
    expect(told).toHaveLength(10);
    for (const one of told) {
      expect(one.length).toBeLessThan(700);
      expect(one).not.toContain(secret);
      expect(one).not.toContain("\u001b");
    }
  });
});
