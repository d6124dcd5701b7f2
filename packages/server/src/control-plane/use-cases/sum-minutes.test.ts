import { expect, it } from "vitest";
import { sumMinutes } from "./sum-minutes.ts";

const tally = (
  minute: number,
  node: string,
  step: number,
  side: "old" | "new" | "shadow",
  counts: [number, number],
) => ({
  ...{ rollout: "r", minute, node, step, side },
  ...{ decided: counts[0], denied: counts[1] },
});

it("adds up nodes and rings, and keeps versions and minutes apart", () => {
  const tallies = [
    tally(11, "a", 0, "new", [10, 4]),
    tally(10, "a", 0, "old", [5, 1]),
    tally(11, "b", 0, "new", [7, 0]),
    tally(11, "b", 1, "new", [1, 1]),
    tally(11, "a", 1, "old", [20, 2]),
    tally(12, "a", 1, "shadow", [3, 3]),
  ];
  const none = { old: undefined, new: undefined, shadow: undefined };
  expect(sumMinutes(tallies)).toEqual([
    { ...none, startMs: 600_000, old: { decided: 5, denied: 1 } },
    { ...none, startMs: 660_000, old: { decided: 20, denied: 2 }, new: { decided: 18, denied: 5 } },
    { ...none, startMs: 720_000, shadow: { decided: 3, denied: 3 } },
  ]);
  expect(sumMinutes([])).toEqual([]);
});
