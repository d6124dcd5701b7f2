import type { HotKey } from "sluice";
import { expect, it } from "vitest";
import { hotKeyMetrics } from "./hot-key-metrics.ts";

const key = (subject: string, perSecond: number, deniedPerSecond = 0): HotKey => ({
  ...{ policy: "api", scope: "user", subject, perSecond, deniedPerSecond, errorPerSecond: 0 },
});

function renderSamples(keys: readonly HotKey[], count: number): readonly (readonly [string | undefined, number])[][] {
  const report = { keys, totals: { perSecond: 0, deniedPerSecond: 0 } };
  const families = hotKeyMetrics({ count, read: () => report, show: (subject) => subject });
  return families.map(({ samples }) => [...samples()].map(({ labels, value }) => [labels[2], value] as const));
}

it("show at most `count` by rate, and at most `count` by denials", () => {
  expect(renderSamples([key("a", 5), key("b", 9, 1), key("c", 7, 3)], 2)).toEqual([
    [
      ["b", 9],
      ["c", 7],
    ],
    [
      ["c", 3],
      ["b", 1],
    ],
  ]);
});

it("has one series for subjects that look alike when they are written: halves of characters cannot be", () => {
  expect(renderSamples([key("\ud800", 5, 2), key("a", 6), key("\ud801", 3)], 5)).toEqual([
    [
      ["\ufffd", 8],
      ["a", 6],
    ],
    [["\ufffd", 2]],
  ]);
});
