import * as fc from "fast-check";
import { expect, test } from "vitest";
import { drainAll, playLeases, playOf } from "./play-leases.ts";

test("never more than the algorithm admits exactly and the allowance, in any interval, whatever breaks", async () => {
  await fc.assert(
    fc.asyncProperty(playOf({ faults: true, maxSteps: 60 }), async (play) => {
      expect((await playLeases(play)).breaches).toEqual([]);
    }),
    { numRuns: 400 },
  );
}, 300_000);

test("where nothing breaks, what was charged is what was admitted, once every node has stopped", async () => {
  await fc.assert(
    fc.asyncProperty(playOf({ faults: false, maxSteps: 40 }), async (play) => {
      expect((await playLeases(play, drainAll)).breaches).toEqual([]);
    }),
    { numRuns: 300 },
  );
}, 300_000);
