import { describe, expect, it } from "vitest";
import { parseSteps } from "./parse-steps.ts";

describe("the steps of a rollout, as typed", () => {
  it("are shares, and how long each holds", () => {
    expect(parseSteps("1% 10m, 10 % 1h,100%")).toEqual([
      { percent: 1, hold_ms: 600_000 },
      { percent: 10, hold_ms: 3_600_000 },
      { percent: 100, hold_ms: 0 },
    ]);
    expect(parseSteps("0.5")).toEqual([{ percent: 0.5, hold_ms: 0 }]);
  });

  it.each([
    ["", /is not a step/],
    ["ten", /is not a step/],
    ["10%, 5%", /does not come after/],
    ["101%", /more than all/],
    ["10% soon", /is not a time/],
  ])("are refused with a reason: %j", (text, why) => {
    expect(parseSteps(text)).toMatch(why);
  });
});
