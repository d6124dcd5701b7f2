import { describe, expect, it } from "vitest";
import { SluiceError } from "../errors.ts";
import { defaultPolicy, parsePolicies } from "../policy/parse-policies.ts";
import { mergePolicySets } from "./merge-policy-sets.ts";
import { parsePolicyText } from "./parse-policy-text.ts";

const text = (id: string, more = "") => `policies: [{ id: ${id}, limits: [{ by: user, windows: 10/s }] }]\n${more}`;

function problemsOf(merge: () => unknown): string[] {
  try {
    merge();
    return [];
  } catch (error) {
    return (error as SluiceError).problems.map(({ message }) => message);
  }
}

describe("mergePolicySets", () => {
  it("keeps the order, and the one default that was written", () => {
    const merged = mergePolicySets([
      parsePolicyText(text("a")),
      parsePolicyText(text("b", "default: { limits: [{ by: ip, windows: 5/s }] }")),
      parsePolicies({ policies: [], subjects: [{ user: "u1", tier: "t" }] }),
    ]);
    expect(merged.kind).toBe("policy_set");
    expect(merged.policies.map(({ id }) => id)).toEqual(["a", "b"]);
    expect(merged.fallback?.limits[0]?.by).toEqual(["ip"]);
    expect(merged.subjects).toHaveLength(1);
  });

  it("keeps the built-in default where nobody wrote one, and none where somebody wrote none", () => {
    expect(mergePolicySets([parsePolicyText(text("a")), parsePolicyText(text("b"))]).fallback).toBe(defaultPolicy);
    expect(mergePolicySets([]).fallback).toBe(defaultPolicy);
    const merged = mergePolicySets([parsePolicyText(text("a")), parsePolicyText(text("b", "default: none"))]);
    expect(merged.fallback).toBeUndefined();
  });

  it("refuses an id that two files have, and names both", () => {
    const merge = () =>
      mergePolicySets([
        parsePolicyText(text("a"), { file: "one.yaml" }),
        parsePolicyText(text("a"), { file: "two.yaml" }),
      ]);
    expect(merge).toThrow(SluiceError);
    expect(problemsOf(merge)).toEqual([
      "in two.yaml is a, as is policies[0].id in one.yaml; every policy has its own id",
    ]);
  });

  it("refuses two defaults", () => {
    const other = (id: string) => parsePolicyText(text(id, "default: { unlimited: true }"), { file: `${id}.yaml` });
    expect(problemsOf(() => mergePolicySets([other("a"), other("b")]))).toEqual([
      "in b.yaml is also written in a.yaml; write it once",
    ]);
  });
});
