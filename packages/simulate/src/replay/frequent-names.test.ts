import { expect, it } from "vitest";
import { FrequentNames } from "./frequent-names.ts";

it("keeps every name that is frequent enough, with the error of its count", () => {
  const names = new FrequentNames(8);
  for (let i = 0; i < 400; i++) {
    names.add(`rare ${i}`);
    names.add("often");
  }
  const [first] = names.list();
  expect(first?.name).toBe("often");
  expect(first!.count).toBeGreaterThanOrEqual(400);
  expect(first!.count - first!.error).toBeLessThanOrEqual(400);
  expect(names.list()).toHaveLength(8);
});
