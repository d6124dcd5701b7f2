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

  it("are in force together, and what both have by the one that wins, which is told", () => {
    const byFiles = mergePolicies(files, stored, "files");
    expect(limits(byFiles.policySet)).toEqual({ both: 1, file: 2, stored: 4 });
    expect(byFiles.overridden).toEqual([{ kind: "policy", id: "both" }]);
    const byStore = mergePolicies(files, stored, "store");
    expect(limits(byStore.policySet)).toEqual({ both: 3, file: 2, stored: 4 });
    expect(byStore.overridden).toEqual([{ kind: "policy", id: "both" }]);
    createLimiter({ policies: byStore.policySet });
  });

  it("are not mixed where two versions of a policy are on trial", () => {
    const [both] = stored.policies;
    const onTrial = { ...stored, policies: [both!, { ...both!, version: 2 }, stored.policies[1]!] };
    const { policySet, overridden } = mergePolicies(files, onTrial, "files");
    expect(policySet.policies.filter(({ id }) => id === "both")).toHaveLength(1);
    expect(overridden).toHaveLength(1);
    const byStore = mergePolicies(files, onTrial, "store").policySet;
    expect(byStore.policies.filter(({ id }) => id === "both").map(({ version }) => version)).toEqual([1, 2]);
  });

  it("know a subject by one of them, whole", () => {
    const subject = (tier: string): Record<string, unknown> => ({ subjects: [{ user: "u1", tier }] });
    const merged = mergePolicies(parse(subject("gold")), parse(subject("silver")), "store");
    expect(merged.policySet.subjects.map(({ tier }) => tier)).toEqual(["silver"]);
    expect(merged.overridden.map(renderOverridden)).toEqual(["user u1"]);
  });

  const own = { default: { limits: [{ by: ["user"], windows: ["7/h"] }], on_failure: "open" } };
  const fallbackOf = ({ fallback }: PolicySet): number | undefined => fallback?.limits[0]?.windows[0]?.limit;

  it.each(["files", "store"] as const)("have the default that was written, wherever it was, where %s win", (wins) => {
    const written = mergePolicies(parse(own), parse({}), wins);
    expect(fallbackOf(written.policySet)).toBe(7);
    expect(written.overridden).toEqual([]);
    expect(fallbackOf(mergePolicies(parse({}), parse(own), wins).policySet)).toBe(7);
    // As it comes from another thread.
    expect(fallbackOf(mergePolicies(structuredClone(parse({})), parse(own), wins).policySet)).toBe(7);
  });

  it("have the winner's default where both wrote one, also that there is none", () => {
    const { fallback: _, ...none } = parse({});
    const merged = mergePolicies(none, parse(own), "files");
    expect(merged.policySet.fallback).toBeUndefined();
    expect(merged.overridden.map(renderOverridden)).toEqual(["the default policy"]);
  });

  it("leave no two policies with the same id, the default neither", () => {
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
