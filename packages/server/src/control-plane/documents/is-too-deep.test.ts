import { describe, expect, it } from "vitest";
import { isTooDeep, maxDepth } from "./is-too-deep.ts";

function nested(depth: number): unknown {
  let value: unknown = 1;
  for (let i = 0; i < depth; i++) value = i % 2 === 0 ? [value] : { a: value, b: null };
  return value;
}

describe("data from outside", () => {
  it.each([null, 1, "", [], {}, [[], {}], nested(maxDepth)])("is not too deep (%#)", (value) => {
    expect(isTooDeep(value)).toBe(false);
  });

  it.each([maxDepth + 1, maxDepth + 2, 100_000])("is too deep at %i levels", (depth) => {
    expect(isTooDeep(nested(depth))).toBe(true);
  });
});
