import * as fc from "fast-check";
import { expect, test } from "vitest";
import { arbitraryPlay, drainAll, playLeases } from "./play-leases.ts";

test("never admits more than the exact algorithm plus the allowance, in any interval, under any faults", async () => {
  await fc.assert(
    fc.asyncProperty(arbitraryPlay({ faults: true, maxSteps: 60 }), async (play) => {
      expect((await playLeases(play)).breaches).toEqual([]);
    }),
    { numRuns: 400 },
  );
}, 300_000);

test("without faults, charges equal admissions once every node has stopped", async () => {
  await fc.assert(
    fc.asyncProperty(arbitraryPlay({ faults: false, maxSteps: 40 }), async (play) => {
      expect((await playLeases(play, drainAll)).breaches).toEqual([]);
    }),
    { numRuns: 300 },
  );
}, 300_000);
