import type { CompiledLimit } from "sluice/store";
import { testWindow } from "sluice/testing";
import { describe, expect, test } from "vitest";
import { type Ask, decideExactly, driveTraffic, Paces, type Traffic, tickMs } from "./drive-traffic.ts";
import { judgeSteadyOvershoot, renderOvershoot } from "./judge-overshoot.ts";
import { LeaseWorld } from "./lease-world.ts";
import { leasedLimit } from "./leased-limit.ts";
import { createDraw } from "./play-leases.ts";

const nodes = 4;
const ticks = 2400;

/** Every limit amounts to 400 a second. */
const limits: readonly (readonly [string, CompiledLimit])[] = [
  ["gcra", leasedLimit({ algorithm: "gcra", windows: [testWindow(400, 1000, 100)], maxOvershoot: 0.1 })],
  ["fixed windows", leasedLimit({ algorithm: "fixed_window", windows: [testWindow(400, 1000)], maxOvershoot: 0.05 })],
  [
    "sliding windows",
    leasedLimit({ algorithm: "sliding_window", windows: [testWindow(400, 1000)], maxOvershoot: 0.1 }),
  ],
  [
    "two windows",
    leasedLimit({
      algorithm: "token_bucket",
      windows: [testWindow(600, 1000, 300), testWindow(4000, 10_000, 4000)],
      maxOvershoot: 0.1,
      counters: "auto",
    }),
  ],
];

interface Shape {
  readonly name: string;
  readonly traffic: (draw: () => number) => Traffic;
}

/** This many requests of each subject a tick, each at a random node. */
function createTraffic(
  ratePerSecond: (tick: number) => Iterable<readonly [string, number]>,
  chooseNode: (tick: number) => number,
) {
  const paces = new Paces();
  return Array.from({ length: ticks }, (_, tick): Ask[] => {
    const asks: Ask[] = [];
    for (const [subject, perSecond] of ratePerSecond(tick)) {
      const due = paces.next(subject, perSecond);
      for (let i = 0; i < due; i++) asks.push({ node: chooseNode(tick), subject });
    }
    return asks;
  });
}

const atAnyNode = (draw: () => number) => (): number => Math.floor(draw() * nodes);

const shapes: readonly Shape[] = [
  {
    name: "uniform: some subjects at half of their limit, some at twice",
    traffic: (draw) => {
      const subjects = Array.from({ length: 6 }, (_, i) => [`u${i}`, i % 2 === 0 ? 200 : 800] as const);
      return createTraffic(() => subjects, atAnyNode(draw));
    },
  },
  {
    name: "Zipf: one subject has as much as the next two together",
    traffic: (draw) => {
      const subjects = Array.from({ length: 40 }, (_, i) => [`z${i}`, 1600 / (i + 1)] as const);
      return createTraffic(() => subjects, atAnyNode(draw));
    },
  },
  {
    name: "bursty: nothing for a while, then ten times the limit",
    traffic: (draw) => {
      const isOn = (tick: number): boolean => (tick * tickMs) % 3000 < 500;
      return createTraffic((tick) => [["b0", isOn(tick) ? 4000 : 0]], atAnyNode(draw));
    },
  },
  {
    name: "adversarial: many subjects just under the limit",
    traffic: (draw) => {
      const subjects = Array.from({ length: 8 }, (_, i) => [`j${i}`, 392] as const);
      return createTraffic(() => subjects, atAnyNode(draw));
    },
  },
  {
    name: "adversarial: one subject that hops from node to node, above its limit",
    traffic: () =>
      createTraffic(
        () => [["h0", 700]],
        (tick) => Math.floor((tick * tickMs) / 330) % nodes,
      ),
  },
  {
    name: "adversarial: one subject that hops at every request",
    traffic: () => {
      let at = 0;
      return createTraffic(
        () => [["h1", 700]],
        () => at++ % nodes,
      );
    },
  },
];

describe.each(limits)(
  "%s, leased, against counters that decide every request themselves",
  (_, limit) => {
    test.each(shapes)("$name", async ({ traffic: createTraffic }) => {
      const traffic = createTraffic(createDraw(7));
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
      // If anything can be leased, it is.
      expect(world.nodes.reduce((sum, { counters }) => sum + counters.stats.local, 0)).toBeGreaterThan(100);
    });
  },
  120_000,
);
