import fc from "fast-check";
import { createLimiter, type Limiter, ManualClock, MemorySubjectDirectory } from "sluice";
import { algorithms } from "sluice/internal";
import { readShape } from "sluice/shape";
import { describe, expect, it } from "vitest";
import type { PolicyDocument } from "../../control-plane/policy-control.ts";
import { dimensionVocabulary } from "./dimension-vocabulary.ts";
import { readRules } from "./read-rules.ts";
import { type Rule, renderRuleId, renderRuleKey, splitRuleId } from "./rule.ts";
import { scopeVocabulary } from "./scope-vocabulary.ts";
import { removeTier, writeRule } from "./write-rule.ts";

const dimensions = fc.constantFrom("user", "ip", "api_key", "org", "tenant", "x-team");
const segment = fc.oneof(fc.stringMatching(/^[a-z0-9_-]{1,8}$/), fc.constantFrom("*", "{order}"));
const endpoints = fc.oneof(
  fc.constant("*"),
  fc
    .tuple(fc.array(segment, { minLength: 1, maxLength: 4 }), fc.boolean())
    .map(([segments, open]) => `/${segments.join("/")}${open ? "/**" : ""}`),
);
const lines = fc.stringMatching(/^[ -~äß€]{1,40}$/);
const tiers = fc.stringMatching(/^[A-Za-z0-9][A-Za-z0-9 ._:/@-]{0,10}$/).filter((tier) => tier !== "free");
const withBurst = new Set(["gcra", "token_bucket", "leaky_bucket"]);

function arbitraryValues(dimension: string): fc.Arbitrary<string> {
  return fc.oneof(
    fc.constant("*"),
    dimension === "ip" ? fc.ipV4() : fc.stringMatching(/^[ -~ü]{1,20}$/).filter((value) => value.trim() !== ""),
  );
}

/** The rules of one policy: one for subjects without a tier, and any number for tiers. */
const families: fc.Arbitrary<readonly Rule[]> = fc
  .record({
    policy: fc.stringMatching(/^[A-Za-z0-9._:/@-]{1,20}$/).filter((id) => id !== "default"),
    dimension: dimensions,
    endpoint: endpoints,
    algorithm: fc.constantFrom(...algorithms),
    tiers: fc.uniqueArray(tiers, { maxLength: 4 }),
  })
  .chain(({ tiers, ...shared }) =>
    arbitraryValues(shared.dimension).chain((value) =>
      fc.tuple(
        ...[undefined, ...tiers].map((tier) =>
          fc
            .record({
              name: fc.option(lines, { nil: undefined }),
              limit: fc.integer({ min: 1, max: 100_000 }),
              windowSeconds: fc.integer({ min: 1, max: 86_400 }),
              burst: fc.option(fc.integer({ min: 1, max: 1_000 }), { nil: undefined }),
            })
            .map(({ burst, ...own }): Rule => {
              const bursts = withBurst.has(shared.algorithm) && burst !== undefined;
              return { ...shared, ...own, value, tier, burst: bursts ? burst : own.limit };
            }),
        ),
      ),
    ),
  );

function createDocument(rules: readonly Rule[]): PolicyDocument {
  return rules.reduce<PolicyDocument | undefined>(writeRule, undefined)!;
}

function byTier(rules: readonly Rule[]): readonly Rule[] {
  return [...rules].sort((one, other) => renderRuleId(one).localeCompare(renderRuleId(other)));
}

function rulesIn(policy: string, document: PolicyDocument): readonly Rule[] {
  const read = readRules(policy, document);
  if (read.kind === "no_rule") throw new Error(`the policy ${read.why}`);
  return byTier(read.rules);
}

describe("a rule", () => {
  it("is the same after conversion to a policy and back, along with the policy's other rules", () => {
    fc.assert(
      fc.property(families, (rules) => {
        // As read back from the store.
        const document = JSON.parse(JSON.stringify(createDocument(rules))) as PolicyDocument;
        expect(rulesIn(rules[0]!.policy, document)).toEqual(byTier(rules));
      }),
    );
  });

  it("is changed and deleted alone", () => {
    fc.assert(
      fc.property(families, fc.nat(), fc.integer({ min: 1, max: 50_000 }), (rules, which, limit) => {
        const at = which % rules.length;
        const burst = withBurst.has(rules[at]!.algorithm) ? rules[at]!.burst : limit;
        // A burst that takes more than a century to drain makes an invalid policy.
        fc.pre((burst * rules[at]!.windowSeconds) / limit <= 3e9);
        const changed: Rule = { ...rules[at]!, name: "another", limit, burst };
        const others = rules.filter((_, index) => index !== at);
        const document = writeRule(createDocument(rules), changed);
        expect(rulesIn(changed.policy, document)).toEqual(byTier([...others, changed]));
        if (changed.tier === undefined) return;
        expect(rulesIn(changed.policy, removeTier(document, changed.policy, changed.tier))).toEqual(byTier(others));
      }),
    );
  });

  it.each([dimensionVocabulary, scopeVocabulary])(
    "is read as it is shown, in the vocabulary of $path",
    (vocabulary) => {
      fc.assert(
        fc.property(families, (rules) => {
          for (const rule of rules) {
            const told = JSON.parse(JSON.stringify({ ...vocabulary.render(rule), version: 3, created_at: "x" }));
            const read = readShape(vocabulary.replaced, told);
            expect(read).toMatchObject({
              ok: true,
              value: {
                ruleId: renderRuleId(rule),
                name: rule.name,
                dimension: rule.dimension,
                value: rule.value,
                endpoint: rule.endpoint,
                algorithm: rule.algorithm,
                limit: rule.limit,
                windowSeconds: rule.windowSeconds,
                burst: rule.burst,
                expected_version: 3,
              },
            });
            expect(splitRuleId(renderRuleId(rule))).toEqual({ policy: rule.policy, tier: rule.tier });
          }
        }),
      );
    },
  );
});

const base: Rule = {
  policy: "orders",
  tier: undefined,
  name: "Orders",
  dimension: "user",
  value: "*",
  endpoint: "/v1/orders/**",
  algorithm: "fixed_window",
  limit: 3,
  windowSeconds: 60,
  burst: 3,
};

function createPolicyLimiter(...documents: readonly PolicyDocument[]): {
  limiter: Limiter;
  subjects: MemorySubjectDirectory;
} {
  const subjects = new MemorySubjectDirectory();
  const clock = new ManualClock(1_700_000_040_000);
  return { limiter: createLimiter({ policies: { policies: documents, default: "none" }, clock, subjects }), subjects };
}

/** How many of twenty requests pass. */
function passing(limiter: Limiter, dimensions: Readonly<Record<string, string>>): number {
  const asked = Array.from({ length: 20 }, () => limiter.checkSync({ dimensions }));
  return asked.filter(({ allowed }) => allowed).length;
}

describe("the policy of a rule", () => {
  it("limits each value of its dimension separately, at its endpoint only", () => {
    const { limiter } = createPolicyLimiter(createDocument([base]));
    const endpoint = "/v1/orders/7";
    expect(passing(limiter, { user: "a", endpoint })).toBe(3);
    expect(passing(limiter, { user: "b", endpoint })).toBe(3);
    expect(passing(limiter, { user: "a", endpoint: "/v1/users" })).toBe(20);
    // A request without a user is not covered.
    expect(passing(limiter, { ip: "203.0.113.7", endpoint })).toBe(20);
  });

  it("limits one value alone if it names one", () => {
    const { limiter } = createPolicyLimiter(createDocument([{ ...base, value: "a" }]));
    const endpoint = "/v1/orders/7";
    expect(passing(limiter, { user: "a", endpoint })).toBe(3);
    expect(passing(limiter, { user: "b", endpoint })).toBe(20);
  });

  it("limits every request of its dimension if it names no endpoint", () => {
    const { limiter } = createPolicyLimiter(createDocument([{ ...base, endpoint: "*" }]));
    expect(passing(limiter, { user: "a" })).toBe(3);
    expect(passing(limiter, { user: "b", endpoint: "/anything" })).toBe(3);
  });

  it("limits subjects of a tier by the tier's rule, and all others by the one without", () => {
    const { limiter, subjects } = createPolicyLimiter(
      createDocument([base, { ...base, tier: "premium", limit: 7, burst: 7 }]),
    );
    subjects.setTier("user", "p", "premium");
    subjects.setTier("user", "f", "free");
    const endpoint = "/v1/orders/7";
    expect(passing(limiter, { user: "p", endpoint })).toBe(7);
    expect(passing(limiter, { user: "f", endpoint })).toBe(3);
    expect(passing(limiter, { user: "nobody", endpoint })).toBe(3);
  });

  it("allows its burst at once", () => {
    const { limiter } = createPolicyLimiter(createDocument([{ ...base, algorithm: "token_bucket", burst: 5 }]));
    expect(passing(limiter, { user: "a", endpoint: "/v1/orders" })).toBe(5);
  });
});

describe("a change of a rule", () => {
  it("keeps everything in the policy that rules do not express", () => {
    const before = {
      id: "orders",
      owner: "shop",
      on_failure: "closed",
      warn_at: "90%",
      counters: "leased",
      max_overshoot: "5%",
      description: "Orders\nsee the wiki",
      match: { endpoint: "/v1/orders/**", user: "*" },
      limits: [{ name: "per-user", by: "user", windows: { name: "minute", limit: 10, per: "1m" }, blockable: true }],
    };
    const rule = rulesIn("orders", before)[0]!;
    const after = writeRule(before, { ...rule, limit: 20, burst: 20 });
    expect(after).toEqual({
      id: "orders",
      owner: "shop",
      on_failure: "closed",
      warn_at: "90%",
      counters: "leased",
      max_overshoot: "5%",
      description: "Orders\nsee the wiki",
      match: { endpoint: "/v1/orders/**", user: "*" },
      limits: [
        {
          name: "per-user",
          by: ["user"],
          algorithm: "gcra",
          windows: [{ name: "minute", limit: 20, per: "1m" }],
          blockable: true,
        },
      ],
    });
  });
});

describe("a policy that is no rule", () => {
  const match = { user: "*" };
  const limits = [{ by: ["user"], windows: ["10/m"] }];

  it.each<[string, PolicyDocument]>([
    ["has 2 limits", { match, limits: [...limits, { by: ["ip"], windows: ["1/s"] }] }],
    ["has 2 windows", { match, limits: [{ by: ["user"], windows: ["1/s", "10/m"] }] }],
    ["has the window 10/day in UTC", { match, limits: [{ by: ["user"], windows: ["10/day in UTC"] }] }],
    ["has the window 10/500ms", { match, limits: [{ by: ["user"], windows: ["10/500ms"] }] }],
    ["counts by tenant and user", { match, limits: [{ by: ["tenant", "user"], windows: ["1/s"] }] }],
    ["counts by nothing", { match, limits: [{ windows: ["1/s"] }] }],
    ["names no dimension in its match", { limits }],
    ["names user, tenant in its match", { match: { user: "*", tenant: "t" }, limits }],
    ["names user in its match", { match: { user: ["a", "b"] }, limits }],
    ["is only for the methods POST", { match: { ...match, method: "POST" }, limits }],
    ["is of the domain shop", { domain: "shop", match, limits }],
    ["is in shadow mode", { mode: "shadow", match, limits }],
    ["is without limits", { match, unlimited: true }],
    ["has an allow list", { match, limits, allow: { user: ["a"] } }],
    ["has a deny list", { match, limits, deny: { user: ["a"] } }],
    ["sets the cost of requests", { match, limits, cost: 2 }],
    ["has a valid_from", { match, limits, valid_from: "2027-01-01" }],
    ["is for a share of subjects", { match, limits, rollout: { percent: 1, by: "user" } }],
    ["replaces others", { match, limits, replaces: ["other"] }],
    ["blocks for 1m after a denial", { match, limits: [{ ...limits[0], block_for: "1m" }] }],
    ["has a tier called free", { match, limits: [{ ...limits[0], tiers: { free: { windows: ["1/s"] } } }] }],
    [
      "has 2 windows for the tier gold",
      { match, limits: [{ ...limits[0], tiers: { gold: { windows: ["1/s", "2/m"] } } }] },
    ],
  ])("says so: it %s", (why, document) => {
    expect(readRules("p", { id: "p", ...document })).toEqual({ kind: "no_rule", why: expect.stringContaining(why) });
  });

  it("is the default policy", () => {
    expect(readRules("default", { limits })).toMatchObject({ kind: "no_rule" });
  });
});

describe("the unique key of a rule", () => {
  it.each([
    [{ endpoint: "/V1/Orders/{id}/" }, { endpoint: "/v1/orders/*" }],
    [
      { dimension: "ip", value: "2001:DB8::0:1" },
      { dimension: "ip", value: "2001:db8::1" },
    ],
  ])("is the same for all spellings: %j, %j", (one, other) => {
    expect(renderRuleKey({ ...base, ...one })).toBe(renderRuleKey({ ...base, ...other }));
  });

  it.each([{ dimension: "ip" }, { value: "a" }, { endpoint: "/v1/orders" }])("differs by %j", (other) => {
    expect(renderRuleKey({ ...base, ...other })).not.toBe(renderRuleKey(base));
  });
});
