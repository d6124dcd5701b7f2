import { describe, expect, it } from "vitest";
import { createLimiter } from "../create-limiter.ts";
import type { Policy } from "../policy/policy.ts";
import type { CheckRequest } from "../request/check-request.ts";
import { findApplying } from "./find-applying.ts";

const { snapshot } = createLimiter({
  policies: {
    policies: [
      { id: "guard", limits: [{ by: ["user"], windows: ["5/s"] }], on_failure: "open" },
      { id: "tried", match: { endpoint: "/v1/**" }, unlimited: true, mode: "shadow", events: "each" },
      { id: "billed", match: { endpoint: "/v1/**" }, unlimited: true, events: "each" },
      { id: "billed-too", match: { endpoint: "/v1/a" }, unlimited: true, events: "each" },
      { id: "by-name", match: { endpoint: "/other" }, unlimited: true, events: "each" },
    ],
  },
});

function find(request: CheckRequest, isWanted = ({ events }: Policy): boolean => events === "each") {
  return findApplying(snapshot, request, () => 0, isWanted)?.id;
}

describe("the policy that applies to a request", () => {
  it("is found whether or not it would decide, and never one in shadow mode", () => {
    expect(find({ dimensions: { user: "u", endpoint: "/v1/b" } })).toBe("billed");
    expect(find({ dimensions: { user: "u", endpoint: "/v2" } })).toBeUndefined();
    expect(find({ dimensions: { user: "u", endpoint: "/v2" } }, () => true)).toBe("guard");
  });

  it("is always the same of several", () => {
    const found = find({ dimensions: { user: "u", endpoint: "/v1/a" } });
    for (const user of ["a", "b", "c"]) expect(find({ dimensions: { user, endpoint: "/v1/a" } })).toBe(found);
  });

  it("may be asked for by its id, also if it is gone by now", () => {
    expect(find({ policies: ["guard", "by-name"] })).toBe("by-name");
    expect(find({ policies: ["gone", "guard"] })).toBeUndefined();
    expect(find({ policies: ["gone"] })).toBeUndefined();
  });

  it("is none for a request that brings its limits along", () => {
    const window = { limit: 1, per: { kind: "ms", ms: 1_000 }, burst: 1 } as const;
    expect(find({ limits: [{ name: "own", by: [], window }], dimensions: { endpoint: "/v1/b" } })).toBeUndefined();
  });
});
