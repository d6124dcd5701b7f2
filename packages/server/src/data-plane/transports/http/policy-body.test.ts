import { parsePolicies } from "sluice";
import { describe, expect, it } from "vitest";
import { policySetBody } from "./policy-body.ts";

describe("policies as JSON", () => {
  it("can be read back as a policy file, and mean the same", () => {
    const written = parsePolicies({
      domain: "shop",
      policies: [
        {
          id: "orders",
          version: 3,
          description: "d",
          owner: "o",
          match: { endpoint: "/v1/{order}/**", method: ["GET", "POST"], region: ["eu", "us"], plan: "*" },
          limits: [
            { by: ["tenant"], windows: ["16.67/s burst 200", { limit: 3000, per: "1m", name: "minute" }, "100k/h"] },
            {
              name: "per-user",
              by: ["tenant", "user"],
              algorithm: "leaky_bucket",
              windows: ["10/1500ms"],
              tiers: { premium: { windows: ["100/s"] } },
              missing: "deny",
              block_for: "10m",
              on_change: "reset",
            },
            { name: "day", windows: ["1000/day in Europe/Berlin"] },
            { name: "trial", by: ["user"], windows: ["50 once"], blockable: true },
          ],
          cost: { "/v1/orders/export": 10 },
          allow: { ip: ["10.0.0.0/8"] },
          deny: { user: ["mallory"] },
          mode: "shadow",
          replaces: ["older"],
          valid_from: "2026-01-02T03:04:05Z",
          rollout: { percent: 10, by: "user" },
          on_failure: "local",
          deadline: "50ms",
          warn_at: 0.5,
          counters: "leased",
          max_overshoot: "0.29%",
          count_denials: true,
          events: "each",
        },
        { id: "older", unlimited: true, on_failure: "open" },
        { id: "exact", limits: [{ windows: "1/s" }], on_failure: "open", counters: "exact" },
        { id: "exceeds-nothing", limits: [{ windows: "1/s" }], on_failure: "open", max_overshoot: 0 },
      ],
      default: { limits: [{ by: ["ip"], windows: ["5/s"] }], on_failure: "closed", max_overshoot: "5%" },
      subjects: [
        { user: "u1", tier: "premium" },
        { tenant: "acme", limits: [{ policy: "orders", windows: ["500/s"], until: "2027-01-01T00:00:00Z" }] },
      ],
    });
    const body = JSON.parse(JSON.stringify(policySetBody(written)));
    expect(parsePolicies(body)).toEqual(written);
    expect(
      body.policies.map(({ counters, max_overshoot }: Record<string, unknown>) => [counters, max_overshoot]),
    ).toEqual([
      ["leased", 0.0029],
      ["auto", 0.01],
      ["exact", 0],
      ["auto", 0],
    ]);
  });

  it("says so if requests that match nothing are not limited", () => {
    const body = policySetBody(parsePolicies({ policies: [], default: "none" }));
    expect(body.default).toBe("none");
  });
});
