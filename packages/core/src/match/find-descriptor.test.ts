import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { createLimiter } from "../create-limiter.ts";
import type { DescriptorEntry, DescriptorNode } from "../policy/descriptor.ts";
import { parsePolicies } from "../policy/parse-policies.ts";
import type { PolicySet } from "../policy/policy.ts";
import { parsePolicyText } from "../policy-text/parse-policy-text.ts";
import { findDescriptor, hasDescriptors } from "./find-descriptor.ts";

function createTree(descriptors: readonly DescriptorNode[], domain = "d"): PolicySet {
  return { ...parsePolicies({ policies: [] }), descriptors: [{ domain, descriptors }] };
}

function node(key: string, value?: string, children: readonly DescriptorNode[] = [], shared = false): DescriptorNode {
  return { key, ...(value === undefined ? undefined : { value }), limits: [], mode: "enforce", shared, children };
}

const entry = (key: string, value = ""): DescriptorEntry => ({ key, value });

/** The rule as stated, without any index. */
function findSlowly(
  nodes: readonly DescriptorNode[],
  [first, ...rest]: readonly DescriptorEntry[],
): DescriptorNode | undefined {
  if (first === undefined) return undefined;
  const ofKey = nodes.filter(({ key }) => key === first.key);
  const fits = (pattern: string): boolean => new RegExp(`^${pattern.replaceAll("*", ".*")}$`, "s").test(first.value);
  const found =
    ofKey.find(({ value }) => value === first.value) ??
    ofKey.find(({ value }) => value?.includes("*") && fits(value)) ??
    ofKey.find(({ value }) => value === undefined);
  return found === undefined || rest.length === 0 ? found : findSlowly(found.children, rest);
}

describe("finding a descriptor", () => {
  it("goes by the value, then by patterns in their order, then by the key alone", () => {
    const exact = node("path", "/api/v1");
    const pattern = node("path", "/api/*");
    const wider = node("path", "/a*");
    const any = node("path");
    const set = createTree([any, wider, pattern, exact]);
    const found = (value: string): DescriptorNode | undefined => findDescriptor(set, "d", [entry("path", value)])?.node;
    expect(found("/api/v1")).toBe(exact);
    expect(found("/api/v2")).toBe(wider);
    expect(found("/api/*")).toBe(pattern);
    expect(found("/other")).toBe(any);
  });

  it("goes one level down with every entry, and does not look back", () => {
    const leaf = node("to");
    const set = createTree([node("type", "ad", [leaf]), node("type", undefined, [node("from")])]);
    expect(findDescriptor(set, "d", [entry("type", "ad"), entry("to", "1")])?.node).toBe(leaf);
    expect(findDescriptor(set, "d", [entry("type", "ad"), entry("from", "1")])).toBeUndefined();
    expect(findDescriptor(set, "d", [entry("to", "1"), entry("type", "ad")])).toBeUndefined();
    expect(findDescriptor(set, "d", [entry("type", "ad"), entry("to", "1"), entry("more", "1")])).toBeUndefined();
    expect(findDescriptor(set, "d", [])).toBeUndefined();
    expect(findDescriptor(set, "elsewhere", [entry("type", "ad")])).toBeUndefined();
    expect([hasDescriptors(set), hasDescriptors(set, "d"), hasDescriptors(set, "elsewhere")]).toEqual([
      true,
      true,
      false,
    ]);
    expect(hasDescriptors(parsePolicies({ policies: [] }))).toBe(false);
  });

  it("names the subject by all entries, so that no two descriptors share one by accident", () => {
    const set = createTree([node("a", undefined, [node("b")]), node("a|b=x")]);
    const subject = (...entries: DescriptorEntry[]) => findDescriptor(set, "d", entries)?.subject;
    expect(subject(entry("a", "1"), entry("b", "2"))).toBe("a=1|b=2");
    expect(subject(entry("a", "1|b=2"))).toBe("a=1\\|b\\=2");
    expect(subject(entry("a|b=x", ""))).toBe("a\\|b\\=x=");
  });

  it("has one subject for all values of a pattern that shares its counter, and only there", () => {
    const set = createTree([node("file", "docs/*", [node("user")], true), node("file", "pics/*")]);
    const subject = (...entries: DescriptorEntry[]) => findDescriptor(set, "d", entries)?.subject;
    expect(subject(entry("file", "docs/a"))).toBe("file=docs/*");
    expect(subject(entry("file", "docs/b"), entry("user", "u"))).toBe("file=docs/*|user=u");
    expect(subject(entry("file", "pics/a"))).toBe("file=pics/a");
  });

  it("finds what the rule finds without an index", () => {
    const word = fc.constantFrom("", "a", "b", "ab", "*", "a*", "*b", "__proto__", "constructor");
    const key = fc.constantFrom("k", "l", "__proto__", "toString");
    const { nodes } = fc.letrec<{ nodes: DescriptorNode[]; node: DescriptorNode }>((tie) => ({
      nodes: fc.uniqueArray(tie("node"), { maxLength: 6, selector: (one) => `${one.key} ${one.value ?? "?"}` }),
      node: fc
        .tuple(key, fc.option(word, { nil: undefined }), fc.oneof({ maxDepth: 3 }, fc.constant([]), tie("nodes")))
        .map(([name, value, children]) => node(name, value === "" ? undefined : value, children)),
    }));
    const entries = fc.array(fc.record({ key, value: word }), { maxLength: 4 });
    fc.assert(
      fc.property(nodes, entries, (tree, asked) => {
        expect(findDescriptor(createTree(tree), "d", asked)?.node).toBe(findSlowly(tree, asked));
      }),
      { numRuns: 1_000 },
    );
  });

  it("treats JavaScript's own names like any others", () => {
    const set = createTree([node("a")]);
    for (const name of ["__proto__", "constructor", "toString"]) {
      expect(findDescriptor(set, "d", [entry(name, name)])).toBeUndefined();
      expect(findDescriptor(set, name, [entry("a", name)])).toBeUndefined();
      expect(findDescriptor(set, "d", [entry("a", name)])?.subject).toBe(`a=${name}`);
    }
  });

  it("finds its way among ten thousand descriptors", () => {
    const lines = Array.from(
      { length: 10_000 },
      (_, i) => `  - { key: tenant, value: t${i}, rate_limit: { unit: minute, requests_per_unit: ${i + 1} } }`,
    );
    const { policySet } = parsePolicyText(`domain: big\ndescriptors:\n${lines.join("\n")}`);
    expect(policySet.policies).toHaveLength(10_000);
    const limiter = createLimiter({ policies: policySet });
    for (const i of [0, 4_711, 9_999]) {
      const found = findDescriptor(limiter.snapshot.policySet, "big", [entry("tenant", `t${i}`)])!;
      const policies = found.node.limits.map(({ policy }) => policy);
      const decision = limiter.checkSync({ policies, dimensions: { descriptor: found.subject } });
      expect(decision).toMatchObject({ allowed: true, limit: i + 1, policy: `envoy:big/tenant:t${i}` });
    }
  });
});

describe("policies of descriptors", () => {
  const text = `
domain: default
descriptors:
  - key: user
    rate_limit: { unit: hour, requests_per_unit: 1 }
`;

  it("apply only to requests that name them", async () => {
    const { policySet } = parsePolicyText(text);
    const limiter = createLimiter({ policies: policySet });
    const asked = { dimensions: { user: "u", descriptor: "user=u" } };
    expect(limiter.checkSync(asked).policy).toBe("default");
    const { policies } = await limiter.explain(asked);
    expect(policies.map(({ policy }) => policy)).toEqual(["default"]);
    expect(limiter.checkSync({ ...asked, policies: ["envoy:default/user"] }).remaining).toBe(0);
    expect(limiter.checkSync({ ...asked, policies: ["envoy:default/user"] }).allowed).toBe(false);
  });

  it("list every limit in shadow mode, if that is asked for", () => {
    const { policySet } = parsePolicyText(text.replace("  - key: user", "  - key: user\n    shadow_mode: true"));
    const limiter = createLimiter({ policies: policySet });
    const asked = { policies: ["envoy:default/user"], dimensions: { descriptor: "user=u" }, details: true };
    expect(limiter.checkSync(asked)).toMatchObject({
      allowed: true,
      limits: [{ allowed: true, remaining: 0, shadow: true }],
    });
    expect(limiter.checkSync(asked)).toMatchObject({ allowed: true, limits: [{ allowed: false, shadow: true }] });
  });
});
