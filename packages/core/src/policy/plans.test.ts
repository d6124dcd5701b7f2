import { describe, expect, it } from "vitest";
import { parsePolicyFiles } from "../policy-text/parse-policy-text.ts";
import { parsePolicies } from "./parse-policies.ts";
import { planLimitNames } from "./plan-limits.ts";

const api = { id: "api", limits: [{ by: ["user"], windows: ["10/s"] }], on_failure: "open" };
const findProblems = (document: Readonly<Record<string, unknown>>): unknown => {
  try {
    parsePolicies(document);
  } catch (error) {
    return (error as { problems: unknown }).problems;
  }
  return [];
};
const plan = (limit: Readonly<Record<string, unknown>>) => ({ policies: [api], plans: { pro: { limits: [limit] } } });

describe("plans of a policy file", () => {
  it("say the same as tiers under each limit", () => {
    const [limit] = api.limits;
    const tiers = { pro: { windows: ["100/s burst 200", "5k/h"] } };
    const written = { policies: [{ ...api, limits: [{ ...limit, tiers }] }] };
    expect(parsePolicies(plan({ policy: "api", windows: ["100/s burst 200", "5k/h"] }))).toEqual(
      parsePolicies(written),
    );
    expect(
      parsePolicies(plan({ policy: "api", limit: "user", windows: "100/s" })).policies[0]?.limits[0]?.tiers,
    ).toEqual(
      parsePolicies({ policies: [{ ...api, limits: [{ ...limit, tiers: { pro: { windows: "100/s" } } }] }] })
        .policies[0]?.limits[0]?.tiers,
    );
  });

  it("reach policies of other files, and the default policy", () => {
    const files = [
      {
        file: "plans.yaml",
        text: "plans: { pro: { limits: [{ policy: api, windows: [9/s] }, { policy: default, windows: [7/s] }] } }",
      },
      {
        file: "api.yaml",
        text: JSON.stringify({ policies: [api], default: { limits: api.limits, on_failure: "open" } }),
      },
    ];
    const { policySet } = parsePolicyFiles(files);
    expect(policySet.policies[0]?.limits[0]?.tiers.pro?.windows[0]?.limit).toBe(9);
    expect(policySet.fallback?.limits[0]?.tiers.pro?.windows[0]?.limit).toBe(7);
  });

  it.each([
    ["a policy that does not exist", { policy: "app", windows: ["1/s"] }, ["policy"], "no policy has that id"],
    [
      "a default policy that is not written",
      { policy: "default", windows: ["1/s"] },
      ["policy"],
      "no policy has that id",
    ],
    ["a limit that does not exist", { policy: "api", limit: "ip", windows: ["1/s"] }, ["limit"], "it has user"],
    [
      "windows that the algorithm does not have",
      { policy: "api", windows: ["5/day in UTC"] },
      ["windows", 0, "per"],
      "fixed_window",
    ],
  ])("are refused for %s, at its place", (_what, limit, path, message) => {
    expect(findProblems(plan(limit))).toEqual([
      { path: ["plans", "pro", "limits", 0, ...path], message: expect.stringContaining(message) },
    ]);
  });

  it("are refused where the policy has windows for the plan already", () => {
    const twice = { policy: "api", windows: ["1/s"] };
    const document = { policies: [api], plans: { pro: { limits: [twice, twice] } } };
    expect(findProblems(document)).toEqual([
      { path: ["plans", "pro", "limits", 1], message: expect.stringContaining("in one place") },
    ]);
  });

  it("name limits of the same dimensions by number", () => {
    const names = planLimitNames([{ by: ["user"] }, { by: ["user"] }, { by: [] }, { by: ["a", "b"], name: "x" }]);
    expect(names).toEqual(["user", "user#2", "global", "x"]);
  });
});
