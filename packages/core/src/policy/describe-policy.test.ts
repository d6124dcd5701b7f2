import { expect, it } from "vitest";
import { describePolicy } from "./describe-policy.ts";
import { parsePolicies } from "./parse-policies.ts";

function describeOne(policy: Readonly<Record<string, unknown>>): readonly string[] {
  return describePolicy(parsePolicies({ policies: [{ id: "p", ...policy }] }).policies[0]!);
}

it("says whom a policy limits, by how much and what happens in an outage", () => {
  expect(
    describeOne({
      match: { endpoint: "/v1/orders/**", method: ["POST", "PUT"], tenant: ["acme", "globex"] },
      limits: [
        { by: ["tenant", "user"], windows: ["100/m", "20/s burst 50"], tiers: { pro: { windows: ["1000/m"] } } },
        { by: [], windows: ["5000/h"] },
      ],
      on_failure: "closed",
    }),
  ).toEqual([
    "Applies to POST and PUT requests to /v1/orders/** of tenant acme or globex.",
    "Allows 100 per minute, and 20 per second, up to 50 at once, for each tenant and user.",
    "Allows 1000 per minute, for each tenant and user of tier pro.",
    "Allows 5000 per hour, for all requests together.",
    "If the counters are unavailable, it denies requests.",
  ]);
});

it("says what else a policy does", () => {
  expect(
    describeOne({
      match: { user: "*" },
      limits: [{ by: ["user"], algorithm: "fixed_window", windows: ["5/day in Europe/Berlin"] }],
      mode: "shadow",
      deny: { ip: ["10.0.0.1", "10.0.0.2", "10.0.0.3", "10.0.0.4", "10.0.0.5", "10.0.0.6", "10.0.0.7"] },
      on_failure: "open",
    }),
  ).toEqual([
    "Applies to requests with a user.",
    "Allows 5 per calendar day (Europe/Berlin), for each user.",
    "Always denies ip 10.0.0.1, 10.0.0.2, 10.0.0.3, 10.0.0.4, 10.0.0.5 and 2 more.",
    "Is in shadow mode: it reports denials and denies nothing.",
    "If the counters are unavailable, it allows requests.",
  ]);
  expect(describeOne({ match: {}, unlimited: true })).toEqual(["Applies to all requests.", "Does not limit them."]);
});
