import { describe, expect, it } from "vitest";
import { findItems, type PaletteItem, scoreItem } from "./palette-items.ts";

const item = (group: PaletteItem["group"], label: string, words = ""): PaletteItem => ({
  id: label,
  group,
  label,
  words,
  icon: "search",
});

describe("the palette", () => {
  const items = [
    item("Views", "Policies", "limits"),
    item("Views", "Overview"),
    item("Policies", "orders.read"),
    item("Policies", "read.orders.export"),
    item("Policies", "borders"),
  ];

  it("puts what begins with the query before what contains it", () => {
    expect(findItems(items, "orders").map(({ label }) => label)).toEqual([
      "orders.read",
      "read.orders.export",
      "borders",
    ]);
  });

  it("finds by every word, in any order and also by related words", () => {
    expect(findItems(items, "export read").map(({ label }) => label)).toEqual(["read.orders.export"]);
    expect(findItems(items, "limits").map(({ label }) => label)).toEqual(["Policies"]);
    expect(findItems(items, "nothing")).toEqual([]);
  });

  it("keeps groups together and short", () => {
    const many = Array.from({ length: 50 }, (_, at) => item("Policies", `p${at}`));
    expect(findItems([...many, ...items], "", 8).filter(({ group }) => group === "Policies")).toHaveLength(8);
  });

  it("takes what is typed as text, not as a pattern", () => {
    expect(scoreItem(item("Policies", "a.b"), "(")).toBe(0);
    expect(scoreItem(item("Policies", "a.b"), ".")).toBeGreaterThan(0);
  });
});
