import { describe, expect, it } from "vitest";
import { editDistance, suggest } from "./suggest.ts";

describe("suggest", () => {
  const known = ["limits", "windows", "on_failure", "algorithm", "by"];

  it.each([
    ["limts", "limits"],
    ["limit", "limits"],
    ["wnidows", "windows"],
    ["onFailure", "on_failure"],
    ["on-failure", "on_failure"],
    ["ALGORITHM", "algorithm"],
  ])("takes %s for %s", (written, meant) => {
    expect(suggest(written, known)).toBe(meant);
  });

  it.each(["retries", "x", "owner", "", "w".repeat(1000)])("has no idea what %s could mean", (written) => {
    expect(suggest(written, known)).toBeUndefined();
  });

  it("prefers the nearest", () => {
    expect(suggest("tier", ["tiers", "tier2", "tie", "tier_"])).toBe("tier_");
  });
});

describe("editDistance", () => {
  it.each([
    ["", "", 0],
    ["a", "", 1],
    ["kitten", "sitting", 3],
    ["opne", "open", 1],
    ["abc", "abc", 0],
  ])("from %s to %s is %i", (from, to, distance) => {
    expect(editDistance(from, to)).toBe(distance);
    expect(editDistance(to, from)).toBe(distance);
  });
});
