import type { CheckRequest } from "sluice";
import { expect, it } from "vitest";
import { requestKey } from "./request-key.ts";

it.each<[CheckRequest, CheckRequest]>([
  [{ dimensions: { ab: "c" } }, { dimensions: { a: "bc" } }],
  [{ dimensions: { a: "b1 1 cd" } }, { dimensions: { a: "b", c: "d" } }],
  [{ domain: "a" }, { dimensions: { a: "" } }],
  [{ domain: "1 1 ab" }, { dimensions: { a: "b" } }],
  [{ policies: ["1 abc", "x"] }, { dimensions: { "abc1 ": "x" } }],
  [{ policies: ["a", "b"] }, { policies: ["a1 b"] }],
  [{ policies: [] }, {}],
  [{ dimensions: { ["__proto__"]: "a" } }, {}],
])("checks that may have different counters have different keys: %j, %j", (one, other) => {
  expect(requestKey(one)).not.toBe(requestKey(other));
});
