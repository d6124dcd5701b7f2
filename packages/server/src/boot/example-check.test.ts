import { createLimiter, parsePolicies } from "sluice";
import { describe, expect, it } from "vitest";
import { exampleCheck } from "./example-check.ts";

describe("the check that a newcomer is shown", () => {
  it.each([
    [{ id: "a", match: { endpoint: "/v1/orders/**", method: "GET" }, limits: [{ by: ["tenant"], windows: ["5/s"] }] }],
    [
      {
        id: "b",
        match: { endpoint: "/v1/{order}/*" },
        limits: [{ by: ["order", "ip"], windows: ["5/s"], missing: "deny" }],
      },
    ],
    [
      {
        id: "c",
        match: { region: ["eu", "us"], plan: "*" },
        limits: [{ by: ["colour"], windows: ["5/s"], missing: "deny" }],
      },
    ],
    [{ id: "d", domain: "shop", limits: [{ by: ["user"], windows: ["5/s"] }] }],
    [
      {
        id: "e",
        match: { endpoint: "/**" },
        limits: [{ by: ["endpoint", "method"], windows: ["5/s"], missing: "deny" }],
      },
    ],
  ])("is decided by the first policy: %j", (policy) => {
    const policySet = parsePolicies({ policies: [policy], default: "none" });
    const decision = createLimiter({ policies: policySet }).checkSync(exampleCheck(policySet));
    expect(decision).toMatchObject({ allowed: true, policy: policy.id, reason: "within_limits" });
  });

  it("is decided by the default policy if there is no other", () => {
    const policySet = parsePolicies({ policies: [] });
    expect(createLimiter({ policies: policySet }).checkSync(exampleCheck(policySet)).policy).toBe("default");
  });
});
