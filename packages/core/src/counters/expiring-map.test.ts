import { describe, expect, it } from "vitest";
import { ExpiringMap } from "./expiring-map.ts";

describe("an expiring map", () => {
  it("forgets entries at their end", () => {
    const map = new ExpiringMap<number>(10);
    map.set("a", 1, 100, 0);
    expect([map.find("a", 99), map.find("a", 100)]).toEqual([1, undefined]);
    expect([map.take("a", 50), map.take("a", 50)]).toEqual([1, undefined]);
  });

  it("when full drops expired entries, wherever they are, before any live one", () => {
    const dropped: number[] = [];
    const map = new ExpiringMap<number>(100, (value) => dropped.push(value));
    map.set("long", -1, 1_000_000, 0);
    for (let i = 0; i < 99; i++) map.set(`short${i}`, i, 10, 0);
    map.set("new", 99, 2_000_000, 20);
    expect(map.find("long", 20)).toBe(-1);
    expect(map.size).toBe(2);
    expect(dropped).toHaveLength(99);
    expect(map.cutShort).toBe(0);
  });

  it("when full of living entries drops the oldest, and counts it", () => {
    const map = new ExpiringMap<number>(3);
    for (let i = 0; i < 10; i++) map.set(`k${i}`, i, 1000, 0);
    expect([map.size, map.cutShort, map.find("k7", 0), map.find("k6", 0)]).toEqual([3, 7, 7, undefined]);
  });
});
