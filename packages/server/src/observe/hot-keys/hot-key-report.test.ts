import { createLimiter, HotKeys, ManualClock, MemoryCounters } from "sluice";
import { describe, expect, it } from "vitest";
import { decodeReport, encodeReport, reportHotKeys } from "./hot-key-report.ts";

/** A sketch that has seen this many checks of each user, of which 20 a second are allowed. */
async function createSketch(checks: Readonly<Record<string, number>>): Promise<HotKeys> {
  const clock = new ManualClock();
  const hotKeys = new HotKeys({ clock });
  const limiter = createLimiter({
    clock,
    counters: new MemoryCounters({ clock, hotKeys }),
    policies: { policies: [{ id: "api", limits: [{ by: ["user"], windows: ["20/s"] }] }] },
  });
  for (const [user, times] of Object.entries(checks))
    for (let i = 0; i < times; i++) await limiter.check({ dimensions: { user } });
  return hotKeys;
}

describe("a report of hot keys", () => {
  it("has the top by rate and the top by denials, each once, and all of it in its totals", async () => {
    const report = reportHotKeys(await createSketch({ a: 30, b: 12, c: 11, d: 10, e: 5 }), 2);
    expect(report.keys.map(({ subject, perSecond, deniedPerSecond }) => [subject, perSecond, deniedPerSecond])).toEqual(
      [
        ["a", 30, 10],
        ["b", 12, 0],
      ],
    );
    expect(report.totals).toEqual({ perSecond: 68, deniedPerSecond: 10 });
  });

  it("adds up counters that have the same name, as those of subjects that were cut off", async () => {
    const long = "x".repeat(300);
    const report = reportHotKeys(await createSketch({ [`${long}1`]: 8, [`${long}2`]: 6, b: 3 }), 5);
    expect(report.keys.map(({ subject, perSecond }) => [subject, perSecond])).toEqual([
      [`${"x".repeat(255)}…`, 14],
      ["b", 3],
    ]);
  });

  it("comes through JSON as it was, to a hundredth", async () => {
    const report = reportHotKeys(await createSketch({ 'a"\n|': 30, b: 2 }), 5);
    const decoded = decodeReport(JSON.parse(JSON.stringify(encodeReport(report))));
    expect(decoded?.totals).toEqual(report.totals);
    expect(decoded?.keys).toEqual(
      report.keys.map(({ policy, scope, subject, perSecond, deniedPerSecond, errorPerSecond }) => ({
        ...{ policy, scope, subject, perSecond, deniedPerSecond, errorPerSecond },
      })),
    );
    const third = { ...report, totals: { perSecond: 1 / 3, deniedPerSecond: 0 } };
    expect(decodeReport(encodeReport(third))?.totals.perSecond).toBe(0.33);
  });

  it.each([
    undefined,
    null,
    "text",
    7,
    [],
    {},
    { keys: [] },
    { totals: [1, 2] },
    { totals: [1], keys: [] },
    { totals: [1, -1], keys: [] },
    { totals: ["1", 2], keys: [] },
  ])("is undefined if a node sends something else: %j", (value) => {
    expect(decodeReport(value)).toBeUndefined();
  });

  it("leaves out invalid keys", () => {
    const good = ["api", "user", "u1", 3, 2, 1];
    const bad = [null, "key", [], good.slice(1), ["api", "user", 1, 3, 2, 1], ["api", "user", "u2", 3, 2, Number.NaN]];
    expect(decodeReport({ totals: [3, 2], keys: [...bad, good] })?.keys).toEqual([
      { ...{ policy: "api", scope: "user", subject: "u1", perSecond: 3, deniedPerSecond: 2, errorPerSecond: 1 } },
    ]);
  });
});
