import { createLimiter, type PolicySet, parsePolicies } from "sluice";
import { describe, expect, it } from "vitest";
import { mergePolicies, renderOverridden } from "./merge-policies.ts";

const policy = (id: string, limit: number): Record<string, unknown> => ({
  id,
  limits: [{ by: ["user"], windows: [`${limit}/h`] }],
  on_failure: "open",
});
const parse = (document: Record<string, unknown>): PolicySet => parsePolicies({ policies: [], ...document });
const limits = ({ policies }: PolicySet): Record<string, number | undefined> =>
  Object.fromEntries(policies.map(({ id, limits: [limit] }) => [id, limit?.windows[0]?.limit]));

describe("policies of files and of the store", () => {
  const files = parse({ policies: [policy("both", 1), policy("file", 2)] });
  const stored = parse({ policies: [policy("both", 3), policy("stored", 4)] });

  it("are in force together; where both have an object the winner's is in force, which is reported", () => {
    const byFiles = mergePolicies(files, stored, "files");
    expect(limits(byFiles.policySet)).toEqual({ both: 1, file: 2, stored: 4 });
    expect(byFiles.overridden).toEqual([{ kind: "policy", id: "both" }]);
    const byStore = mergePolicies(files, stored, "store");
    expect(limits(byStore.policySet)).toEqual({ both: 3, file: 2, stored: 4 });
    expect(byStore.overridden).toEqual([{ kind: "policy", id: "both" }]);
    createLimiter({ policies: byStore.policySet });
  });

  it("are not mixed during the rollout of a policy", () => {
    const [both] = stored.policies;
    const onTrial = { ...stored, policies: [both!, { ...both!, version: 2 }, stored.policies[1]!] };
    const { policySet, overridden } = mergePolicies(files, onTrial, "files");
    expect(policySet.policies.filter(({ id }) => id === "both")).toHaveLength(1);
    expect(overridden).toHaveLength(1);
    const byStore = mergePolicies(files, onTrial, "store").policySet;
    expect(byStore.policies.filter(({ id }) => id === "both").map(({ version }) => version)).toEqual([1, 2]);
  });

  it("take a subject whole from one of them", () => {
    const subject = (tier: string): Record<string, unknown> => ({ subjects: [{ user: "u1", tier }] });
    const merged = mergePolicies(parse(subject("gold")), parse(subject("silver")), "store");
    expect(merged.policySet.subjects.map(({ tier }) => tier)).toEqual(["silver"]);
    expect(merged.overridden.map(renderOverridden)).toEqual(["user u1"]);
  });

  const own = { default: { limits: [{ by: ["user"], windows: ["7/h"] }], on_failure: "open" } };
  const findFallback = ({ fallback }: PolicySet): number | undefined => fallback?.limits[0]?.windows[0]?.limit;

  it.each(["files", "store"] as const)("have the only default that was written, if %s win", (wins) => {
    const written = mergePolicies(parse(own), parse({}), wins);
    expect(findFallback(written.policySet)).toBe(7);
    expect(written.overridden).toEqual([]);
    expect(findFallback(mergePolicies(parse({}), parse(own), wins).policySet)).toBe(7);
    // A copy, as it arrives from another thread.
    expect(findFallback(mergePolicies(structuredClone(parse({})), parse(own), wins).policySet)).toBe(7);
  });

  it("have the winner's default if both wrote one, even if it is none", () => {
    const { fallback: _, ...none } = parse({});
    const merged = mergePolicies(none, parse(own), "files");
    expect(merged.policySet.fallback).toBeUndefined();
    expect(merged.overridden.map(renderOverridden)).toEqual(["the default policy"]);
  });

  it("leave no two policies with the same id, including the default", () => {
    const named = parse({ policies: [policy("default", 2)], default: "none" });
    expect(mergePolicies(named, parse(own), "store").overridden.map(renderOverridden)).toEqual([
      "the default policy",
      "policy default",
    ]);
    const { policySet } = mergePolicies({ ...named, fallback: parse({}).fallback! }, parse({}), "files");
    expect(policySet.policies.map(({ id }) => id)).toEqual(["default"]);
    expect(policySet.fallback?.id).toBe("default.fallback");
  });
});
