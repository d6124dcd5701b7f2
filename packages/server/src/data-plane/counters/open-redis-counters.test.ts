import { setImmediate } from "node:timers/promises";
import { startServer, type TestServer } from "@sluice/test-servers";
import { createLimiter, HotKeys } from "sluice";
import type { RateLimitsRuntime } from "sluice/policy-text";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { parseSettings } from "../../settings/parse-settings.ts";
import type { Settings } from "../../settings/settings.ts";
import { openRedisCounters } from "./open-redis-counters.ts";
import { planCounters } from "./plan-counters.ts";
import type { RunningCounters } from "./running-counters.ts";

let first: TestServer;
let second: TestServer;
let lines: string[];

beforeEach(async () => {
  [first, second] = await Promise.all([startServer({ flavor: "valkey" }), startServer({ flavor: "valkey" })]);
  lines = [];
});

afterEach(() => Promise.all([first.close(), second.close()]));

const say = (event: string): number => lines.push(event);
const log = { debug() {}, info: say, warn: say, error: say };
const at = ({ port }: TestServer): { redis: { port: number } } => ({ redis: { port } });

async function open(runtime: RateLimitsRuntime = at(first)): Promise<RunningCounters> {
  const reading = parseSettings({});
  if (reading.kind === "problems") throw new Error("settings");
  const settings: Settings = reading.settings;
  const plan = planCounters(settings, runtime);
  if (plan.kind === "memory") throw new Error("memory");
  return openRedisCounters(plan, settings, log, new HotKeys());
}

const clients = async (server: TestServer): Promise<number> =>
  String(await server.command("CLIENT", "LIST")).split(" name=sluice ").length - 1;

describe("counters on servers", () => {
  it("leave no connection behind when they are closed while they move", async () => {
    const counters = await open();
    await expect.poll(() => counters.status()?.ready, { timeout: 30_000, interval: 5 }).toBe(true);
    second.pause();
    const moved = counters.refresh(at(second));
    for (let turn = 0; turn < 10; turn++) await setImmediate();
    counters.stop();
    await counters.store.close();
    second.resume();
    await moved;
    await expect.poll(async () => [await clients(first), await clients(second)], { timeout: 30_000 }).toEqual([0, 0]);
  });

  it("go by a changed deadline and health check at once, on the connection they have", async () => {
    const { port } = first;
    const patient = {
      redis: { port, socketTimeoutMs: 60_000 },
      healthCheck: { failureThreshold: 50, checkIntervalMs: 60_000 },
    };
    const counters = await open(patient);
    await expect.poll(() => counters.status()?.ready, { timeout: 30_000, interval: 5 }).toBe(true);
    const policy = { id: "p", limits: [{ by: ["user"], windows: "1000000/h" }], on_failure: "open", counters: "exact" };
    const limiter = createLimiter({ policies: { policies: [policy] }, counters: counters.store });
    const check = async (): Promise<string | undefined> =>
      (await limiter.check({ dimensions: { user: "u" } })).degraded;
    expect(await check()).toBeUndefined();
    const connection = async (): Promise<string | undefined> =>
      /id=(\d+) [^\n]* name=sluice /.exec(String(await first.command("CLIENT", "LIST")))?.[1];
    const before = await connection();
    await counters.refresh({
      redis: { port, socketTimeoutMs: 30 },
      healthCheck: { failureThreshold: 2, checkIntervalMs: 100 },
    });
    expect(await connection()).toBe(before);
    expect(lines.at(-1)).toBe("counters.health_check_changed");
    first.pause();
    // Each gives up after 30 ms instead of a minute, and the second opens the breaker; starvation of this process does
    // not.
    const breakerAfterCheck = async (): Promise<string | undefined> => {
      expect(await check()).toBeDefined();
      return counters.stats.redis?.().shards[0]?.breaker;
    };
    await expect.poll(breakerAfterCheck, { timeout: 30_000, interval: 1 }).not.toBe("closed");
    first.resume();
    await expect.poll(() => counters.status()?.ready, { timeout: 30_000, interval: 5 }).toBe(true);
    expect(await check()).toBeUndefined();
    const connected = await connection();
    await counters.refresh({ redis: { port, socketTimeoutMs: 30, socketConnectTimeoutMs: 700 } });
    expect(lines.at(-1)).toBe("counters.reconnected");
    await expect.poll(connection, { timeout: 30_000 }).not.toBe(connected);
    expect(await check()).toBeUndefined();
    counters.stop();
    await limiter.close();
  }, 90_000);

  it("move once if the same is asked for twice", async () => {
    const counters = await open();
    await Promise.all([counters.refresh(at(second)), counters.refresh(at(second))]);
    expect(counters.where).toBe(second.url);
    expect(lines.filter((line) => line === "counters.moved")).toHaveLength(1);
    await counters.refresh(undefined);
    expect(lines.at(-1)).toBe("counters.servers_removed");
    expect(counters.where).toBe(second.url);
    counters.stop();
    await counters.store.close();
  });

  it("are leased from the servers that they move to", async () => {
    const counters = await open();
    await expect.poll(() => counters.status()?.ready, { timeout: 30_000, interval: 5 }).toBe(true);
    const policy = { id: "p", limits: [{ by: ["user"], windows: "1000000/h" }], counters: "leased" };
    const limiter = createLimiter({ policies: { policies: [policy] }, counters: counters.store });
    const granted = (): number => counters.stats.leases?.().granted ?? 0;
    const keep = async (): Promise<number> => {
      await Promise.all(Array.from({ length: 50 }, () => limiter.check({ dimensions: { user: "u" } })));
      return granted();
    };
    const patience = { timeout: 30_000, interval: 5 };
    await expect.poll(keep, patience).toBeGreaterThan(0);
    expect(counters.status()?.leases).toMatchObject({ held: 1, stale: 0 });
    await counters.refresh(at(second));
    const before = granted();
    await expect.poll(keep, patience).toBeGreaterThan(before);
    expect(await second.command("DBSIZE")).toBeGreaterThan(0);
    await counters.drain();
    expect(counters.status()?.leases).toMatchObject({ held: 0, tokens: 0 });
    expect(lines.at(-1)).toBe("leases.returned");
    counters.stop();
    await counters.store.close();
  });
});
