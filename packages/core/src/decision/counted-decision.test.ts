import { describe, expect, it } from "vitest";
import { createLimiter } from "../create-limiter.ts";

const limiter = createLimiter({
  policies: {
    policies: [
      {
        id: "counted",
        match: { endpoint: "/counted" },
        limits: [{ by: ["user"], windows: ["2/h"] }],
        on_failure: "open",
      },
      { id: "free", match: { endpoint: "/free" }, unlimited: true },
    ],
  },
});
const decide = (endpoint: string) => limiter.checkSync({ dimensions: { user: "u", endpoint } });

describe("a decision that was counted", () => {
  it("is plain data", () => {
    const decision = decide("/counted");
    expect(Object.getPrototypeOf(decision)).toBe(Object.prototype);
    expect(structuredClone(decision)).toStrictEqual(decision);
    expect({ ...decision }).toStrictEqual(decision);
    expect(decision).toMatchObject({ allowed: true, policy: "counted", limit: 2, remaining: 1, used: 1 });
  });

  it("has the fields of every other decision, in their order", () => {
    expect(Object.keys(decide("/counted"))).toEqual(Object.keys(decide("/free")));
  });
});
