import { describe, expect, it } from "vitest";
import { SlidingLog } from "./sliding-log.ts";

describe("a sliding log", () => {
  it("gives a cost back out of the entry it went into, and never more than that entry holds", () => {
    const log = new SlidingLog();
    log.add(10, 5, 1000);
    log.add(20, 3, 1000);
    expect(log.remove(15, 4)).toBe(false);
    expect(log.remove(20, 3)).toBe(true);
    expect([log.size, log.total]).toEqual([1, 5]);
    expect(log.remove(10, 2)).toBe(true);
    expect([log.costAt(0), log.total]).toEqual([3, 3]);
    expect(log.remove(11, 1)).toBe(false);
  });
});
