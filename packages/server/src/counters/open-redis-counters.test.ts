import { setImmediate } from "node:timers/promises";
import { startServer, type TestServer } from "@sluice/test-servers";
import { createLimiter, HotKeys } from "sluice";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { parseSettings } from "../settings/parse-settings.ts";
import type { Settings } from "../settings/settings.ts";
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

const say = (_fields: object, message: string): number => lines.push(message);
const log = { debug() {}, info: say, warn: say, error: say };
const at = ({ port }: TestServer): { redis: { port: number } } => ({ redis: { port } });

async function open(): Promise<RunningCounters> {
  const reading = parseSettings({});
  if (reading.kind === "problems") throw new Error("settings");
  const settings: Settings = reading.settings;
  const plan = planCounters(settings, at(first));
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

  it("move once where the same is asked for twice", async () => {
    const counters = await open();
    await Promise.all([counters.refresh(at(second)), counters.refresh(at(second))]);
    expect(counters.where).toBe(second.url);
    expect(lines.filter((line) => line.includes("on other servers now"))).toHaveLength(1);
    await counters.refresh(undefined);
    expect(lines.at(-1)).toContain("takes effect at the next start");
    expect(counters.where).toBe(second.url);
    counters.stop();
    await counters.store.close();
  });

  it("are leased from the servers that they move to", async () => {
    const counters = await open();
    await expect.poll(() => counters.status()?.ready, { timeout: 30_000, interval: 5 }).toBe(true);
    const policy = { id: "p", limits: [{ by: ["user"], windows: "1000000/h" }], counters: "leased" };
    const limiter = createLimiter({ policies: { policies: [policy] }, counters: counters.store });
    const granted = (): number => counters.figures.leases?.().granted ?? 0;
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
    expect(lines.at(-1)).toMatch(/leases .*given back/);
    counters.stop();
    await counters.store.close();
  });
});
