import { parsePolicies } from "sluice";
import { expect, it } from "vitest";
import { countPolicies } from "./count-policies.ts";

it("counts a policy once while two versions of it are in force, and not the one for requests that match nothing", () => {
  const [policy] = parsePolicies({
    policies: [{ id: "a", limits: [{ windows: ["1/s"] }] }],
    default: { limits: [{ windows: ["1/s"] }] },
  }).policies;
  expect(countPolicies({ policies: [policy!, { ...policy!, version: 2 }, { ...policy!, id: "b" }] })).toBe(2);
});
