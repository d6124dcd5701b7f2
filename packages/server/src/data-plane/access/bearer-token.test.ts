import { describe, expect, it } from "vitest";
import { bearerTokenOf } from "./bearer-token.ts";

describe("the token of a request", () => {
  it.each([
    ["Bearer abc", "abc"],
    ["bearer abc", "abc"],
    ["BEARER  abc ", "abc"],
    ["Bearer AbC=", "AbC="],
  ])("is what stands behind Bearer: %j", (authorization, token) => {
    expect(bearerTokenOf({ authorization })).toBe(token);
  });

  it("is none where nothing is said", () => {
    expect(bearerTokenOf({})).toBeUndefined();
  });

  // Not as if nothing were said: what was said is refused, and counted.
  it.each([
    "",
    "abc",
    "Basic abc",
    "Bearer",
    "Bearer ",
    "Bearer a b",
    "Bearer a, Bearer b",
    "Bearer\tabc",
    "xBearer abc",
  ])("is one that nobody has where something else is said: %j", (authorization) => {
    expect(bearerTokenOf({ authorization })).toBe("");
  });
});
