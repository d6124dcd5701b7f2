import type { CompiledLimit } from "sluice";
import { windowOf } from "sluice/testing";
import { describe, expect, test } from "vitest";
import { type Ask, decideExactly, driveTraffic, Paces, type Traffic, tickMs } from "./drive-traffic.ts";
import { judgeSteadyOvershoot, renderOvershoot } from "./judge-overshoot.ts";
import { LeaseWorld } from "./lease-world.ts";
import { leasedLimit } from "./leased-limit.ts";
import { lotsOf } from "./play-leases.ts";

const nodes = 4;
const ticks = 2400;

/** Every limit is of 400 a second, in one way or another. */
const limits: readonly (readonly [string, CompiledLimit])[] = [
  ["gcra", leasedLimit({ algorithm: "gcra", windows: [windowOf(400, 1000, 100)], maxOvershoot: 0.1 })],
  ["fixed windows", leasedLimit({ algorithm: "fixed_window", windows: [windowOf(400, 1000)], maxOvershoot: 0.05 })],
  ["sliding windows", leasedLimit({ algorithm: "sliding_window", windows: [windowOf(400, 1000)], maxOvershoot: 0.1 })],
  [
    "two windows",
    leasedLimit({
      algorithm: "token_bucket",
      windows: [windowOf(600, 1000, 300), windowOf(4000, 10_000, 4000)],
      maxOvershoot: 0.1,
      counters: "auto",
    }),
  ],
];

interface Shape {
  readonly name: string;
  readonly traffic: (draw: () => number) => Traffic;
}

/** So many requests of each subject a tick, each at a node that is drawn. */
function trafficOf(
  perSecondOf: (tick: number) => Iterable<readonly [string, number]>,
  nodeOf: (tick: number) => number,
) {
  const paces = new Paces();
  return Array.from({ length: ticks }, (_, tick): Ask[] => {
    const asks: Ask[] = [];
    for (const [subject, perSecond] of perSecondOf(tick)) {
      const due = paces.next(subject, perSecond);
      for (let i = 0; i < due; i++) asks.push({ node: nodeOf(tick), subject });
    }
    return asks;
  });
}

const atAnyNode = (draw: () => number) => (): number => Math.floor(draw() * nodes);

const shapes: readonly Shape[] = [
  {
    name: "uniform: some subjects with half of what they may, some with twice as much",
    traffic: (draw) => {
      const subjects = Array.from({ length: 6 }, (_, i) => [`u${i}`, i % 2 === 0 ? 200 : 800] as const);
      return trafficOf(() => subjects, atAnyNode(draw));
    },
  },
  {
    name: "Zipf: one subject has as much as the next two together",
    traffic: (draw) => {
      const subjects = Array.from({ length: 40 }, (_, i) => [`z${i}`, 1600 / (i + 1)] as const);
      return trafficOf(() => subjects, atAnyNode(draw));
    },
  },
  {
    name: "bursty: nothing for a while, then ten times the limit",
    traffic: (draw) => {
      const isOn = (tick: number): boolean => (tick * tickMs) % 3000 < 500;
      return trafficOf((tick) => [["b0", isOn(tick) ? 4000 : 0]], atAnyNode(draw));
    },
  },
  {
    name: "adversarial: many subjects just under the limit",
    traffic: (draw) => {
      const subjects = Array.from({ length: 8 }, (_, i) => [`j${i}`, 392] as const);
      return trafficOf(() => subjects, atAnyNode(draw));
    },
  },
  {
    name: "adversarial: one subject that hops from node to node, with more than it may",
    traffic: () =>
      trafficOf(
        () => [["h0", 700]],
        (tick) => Math.floor((tick * tickMs) / 330) % nodes,
      ),
  },
  {
    name: "adversarial: one subject that hops at every request",
    traffic: () => {
      let at = 0;
      return trafficOf(
        () => [["h1", 700]],
        () => at++ % nodes,
      );
    },
  },
];

describe.each(limits)(
  "%s, leased, against counters that decide every request themselves",
  (_, limit) => {
    test.each(shapes)("$name", async ({ traffic: trafficOf }) => {
      const traffic = trafficOf(lotsOf(7));
      const world = new LeaseWorld();
      for (let i = 0; i < nodes; i++) world.addNode();
      const leased = await driveTraffic(world, traffic, () => limit);
      const exactly = decideExactly(traffic, () => limit, world.originMs);
      for (const [subject, { asked, admitted }] of leased) {
        const exact = exactly.get(subject)!.admitted;
        expect(admitted, `${subject}: ${admitted} of ${asked} admitted, ${exact} exactly`).toBeGreaterThanOrEqual(
          0.97 * exact,
        );
      }
      for (const { name, course, admissions } of world.windows()) {
        const worst = judgeSteadyOvershoot(admissions, course);
        expect(worst.beyond, `${name}: ${renderOvershoot(worst)}`).toBeLessThanOrEqual(0);
      }
      expect(world.breaches).toEqual([]);
      // Where there is something to lease, it is.
      expect(world.nodes.reduce((sum, { counters }) => sum + counters.stats.local, 0)).toBeGreaterThan(100);
    });
  },
  120_000,
);
