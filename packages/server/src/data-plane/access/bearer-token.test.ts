import { describe, expect, it } from "vitest";
import { findBearerToken } from "./bearer-token.ts";

describe("the token of a request", () => {
  it.each([
    ["Bearer abc", "abc"],
    ["bearer abc", "abc"],
    ["BEARER  abc ", "abc"],
    ["Bearer AbC=", "AbC="],
  ])("is what follows Bearer: %j", (authorization, token) => {
    expect(findBearerToken({ authorization })).toBe(token);
  });

  it("is undefined without the header", () => {
    expect(findBearerToken({})).toBeUndefined();
  });

  // Unlike an absent header: what was sent is refused, and counted.
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
  ])("is an unknown one if the header has something else: %j", (authorization) => {
    expect(findBearerToken({ authorization })).toBe("");
  });
});
