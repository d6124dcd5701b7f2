import type { LeasedCountersOptions } from "sluice";
import type { LeasedCountersStats } from "sluice/internal";
import { testWindow } from "sluice/testing";
import { describe, expect, test } from "vitest";
import { type Ask, driveTraffic, Paces, type Shares, type Traffic, tickMs } from "./drive-traffic.ts";
import { judgeSteadyOvershoot, renderOvershoot } from "./judge-overshoot.ts";
import { LeaseWorld } from "./lease-world.ts";
import { leasedLimit } from "./leased-limit.ts";
import { createDraw } from "./play-leases.ts";

/**
 * A whale among tenants doubles its rate within three seconds, on three nodes. Its leases follow within five, no other
 * tenant notices, and nothing is exceeded by more than its policy states.
 */

const nodes = 3;
const tenants = Array.from({ length: 12 }, (_, i) => `tenant ${i}`);
/** A few of them request more than their limit. */
const tenantPerSecond = (index: number): number => (index % 4 === 3 ? 180 : 60);
const tenantLimit = leasedLimit({
  name: "tenant",
  algorithm: "gcra",
  windows: [testWindow(120, 1000, 120)],
  maxOvershoot: 0.1,
  counters: "auto",
});

const calmMs = 12_000;
const rampMs = 3000;
const convergedMs = calmMs + rampMs + 5000;
const endMs = convergedMs + 10_000;

function whaleTraffic(fromPerSecond: number, toPerSecond: number): Traffic {
  const draw = createDraw(11);
  const paces = new Paces();
  return Array.from({ length: endMs / tickMs }, (_, tick): Ask[] => {
    const grown = Math.min(Math.max((tick * tickMs - calmMs) / rampMs, 0), 1);
    const asks: Ask[] = [];
    const ask = (subject: string, perSecond: number): void => {
      const due = paces.next(subject, perSecond);
      for (let i = 0; i < due; i++) asks.push({ node: Math.floor(draw() * nodes), subject });
    };
    ask("whale", fromPerSecond + (toPerSecond - fromPerSecond) * grown);
    for (const [index, tenant] of tenants.entries()) ask(tenant, tenantPerSecond(index));
    return asks;
  });
}

function openWorld(leases: LeasedCountersOptions = {}): LeaseWorld {
  const world = new LeaseWorld({ leases });
  for (let i = 0; i < nodes; i++) world.addNode();
  return world;
}

/** The totals of all nodes so far. */
function sumStats(world: LeaseWorld): Pick<LeasedCountersStats, "local" | "central" | "fetches" | "granted"> {
  const sum = { local: 0, central: 0, fetches: 0, granted: 0 };
  for (const { counters } of world.nodes) {
    const { local, central, fetches, granted } = counters.stats;
    sum.local += local;
    sum.central += central;
    sum.fetches += fetches;
    sum.granted += granted;
  }
  return sum;
}

function expectBounds(world: LeaseWorld): void {
  for (const { name, course, admissions } of world.windows()) {
    const worst = judgeSteadyOvershoot(admissions, course);
    expect(worst.beyond, `${name}: ${renderOvershoot(worst)}`).toBeLessThanOrEqual(0);
  }
  expect(world.breaches).toEqual([]);
}

/** A tenant below its limit gets everything, and one above gets its limit. */
function expectNobodyStarved(shares: Shares): void {
  const allowed = 120 + (120 * endMs) / 1000;
  for (const [index, tenant] of tenants.entries()) {
    const { asked, admitted } = shares.get(tenant)!;
    expect(admitted, tenant).toBeGreaterThanOrEqual(tenantPerSecond(index) < 120 ? asked : 0.97 * allowed);
  }
}

describe("a whale doubles its rate", () => {
  test("within its limit: leases match the new rate within five seconds", async () => {
    const whaleLimit = leasedLimit({
      name: "whale",
      algorithm: "gcra",
      windows: [testWindow(1_000_000, 1000)],
      counters: "auto",
    });
    const world = openWorld({ refreshMs: 1000 });
    const traffic = whaleTraffic(1500, 3000).map((asks) => asks.filter(({ subject }) => subject === "whale"));
    const converged = convergedMs / tickMs;
    await driveTraffic(world, traffic.slice(0, converged), () => whaleLimit);
    const before = sumStats(world);
    const shares = await driveTraffic(world, traffic.slice(converged), () => whaleLimit);
    const after = sumStats(world);
    expect(shares.get("whale")!.admitted).toBe(shares.get("whale")!.asked);
    const local = after.local - before.local;
    expect(local / (local + after.central - before.central)).toBeGreaterThan(0.9);
    // A lease lasts about as long as intended, at the new rate.
    const perFetch = (after.granted - before.granted) / (after.fetches - before.fetches);
    expect(perFetch).toBeGreaterThan(0.5 * (3000 / nodes));
    expect(perFetch).toBeLessThan(2 * (3000 / nodes));
    expectBounds(world);
  });

  test.each([
    ["within its limit", 1500, 3000, 1_000_000, 0.01],
    ["to more than its limit", 1500, 3000, 2000, 0.1],
  ])("%s: no other tenant is starved, and nothing is exceeded", async (_, from, to, limit, maxOvershoot) => {
    const whaleLimit = leasedLimit({
      name: "whale",
      algorithm: "gcra",
      windows: [testWindow(limit, 1000)],
      maxOvershoot,
      counters: "auto",
    });
    const world = openWorld();
    const traffic = whaleTraffic(from, to);
    const shares = await driveTraffic(world, traffic, (subject) => (subject === "whale" ? whaleLimit : tenantLimit));
    expectNobodyStarved(shares);
    expectBounds(world);
    const { asked, admitted } = shares.get("whale")!;
    const allowed = Math.min(asked, (limit * (endMs - calmMs - rampMs)) / 1000 + (from * calmMs) / 1000);
    expect(admitted).toBeGreaterThanOrEqual(0.97 * allowed);
  });
}, 120_000);
