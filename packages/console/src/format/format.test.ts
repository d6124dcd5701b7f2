import { describe, expect, it } from "vitest";
import { formatCompact, formatCount, formatNoun, formatRate, formatShare } from "./numbers.ts";
import { formatAgo, formatDuration } from "./times.ts";

describe("numbers", () => {
  it("have three digits where there is little room", () => {
    expect([0, 7, 0.126, 12.34, 999, 1_234, 56_789, 1_234_567].map(formatCompact)).toEqual([
      "0",
      "7",
      "0.13",
      "12.3",
      "999",
      "1.23K",
      "56.8K",
      "1.23M",
    ]);
    expect([0.004, 0.13, 96.14, 5_210.4].map(formatRate)).toEqual(["0", "0.13", "96.1", "5,210"]);
    expect(formatCount(12_345)).toBe("12,345");
  });

  it("never show a little as nothing, nor nearly all as all", () => {
    expect([0, 0.00001, 0.0123, 0.5, 0.999, 0.99999, 1].map(formatShare)).toEqual([
      "0 %",
      "< 0.01 %",
      "1.23 %",
      "50 %",
      "99.9 %",
      "> 99.99 %",
      "100 %",
    ]);
    expect(formatShare(Number.NaN)).toBe("–");
  });

  it("agree with their nouns", () => {
    expect([formatNoun(1, "policy", "policies"), formatNoun(2, "policy", "policies")]).toEqual([
      "1 policy",
      "2 policies",
    ]);
  });
});

describe("times", () => {
  it("have the two largest units", () => {
    expect([0, 250, 1_500, 45_000, 245_000, 7_800_000, 273_600_000].map(formatDuration)).toEqual([
      "0 ms",
      "250 ms",
      "1.5 s",
      "45 s",
      "4 min 5 s",
      "2 h 10 min",
      "3 d 4 h",
    ]);
  });

  it("round up to a whole unit, never to sixty of the smaller one", () => {
    expect([3_599_900, 119_900].map(formatDuration)).toEqual(["60 min", "2 min"]);
  });

  it("say how long ago, or when", () => {
    expect([0, 42_000, 300_000, 10_800_000, 200_000_000].map((ago) => formatAgo(0, ago))).toEqual([
      "just now",
      "42 s ago",
      "5 min ago",
      "3 h ago",
      "2 d ago",
    ]);
    expect(formatAgo(7_200_000, 0)).toBe("in 2 h");
  });
});
