import fc from "fast-check";
import { algorithms, createLimiter, type Limiter, ManualClock, MemorySubjectDirectory, readShape } from "sluice";
import { describe, expect, it } from "vitest";
import type { PolicyDocument } from "../../control-plane/control-plane.ts";
import { dimensionWords } from "./dimension-words.ts";
import { readRules } from "./read-rules.ts";
import { type Rule, ruleIdOf, ruleKeyOf, splitRuleId } from "./rule.ts";
import { scopeWords } from "./scope-words.ts";
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

function valuesOf(dimension: string): fc.Arbitrary<string> {
  return fc.oneof(
    fc.constant("*"),
    dimension === "ip" ? fc.ipV4() : fc.stringMatching(/^[ -~ü]{1,20}$/).filter((value) => value.trim() !== ""),
  );
}

/** The rules of one policy: one for whoever has no tier, and any number for tiers. */
const families: fc.Arbitrary<readonly Rule[]> = fc
  .record({
    policy: fc.stringMatching(/^[A-Za-z0-9._:/@-]{1,20}$/).filter((id) => id !== "default"),
    dimension: dimensions,
    endpoint: endpoints,
    algorithm: fc.constantFrom(...algorithms),
    tiers: fc.uniqueArray(tiers, { maxLength: 4 }),
  })
  .chain(({ tiers, ...shared }) =>
    valuesOf(shared.dimension).chain((value) =>
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

function documentOf(rules: readonly Rule[]): PolicyDocument {
  return rules.reduce<PolicyDocument | undefined>(writeRule, undefined)!;
}

function byTier(rules: readonly Rule[]): readonly Rule[] {
  return [...rules].sort((one, other) => ruleIdOf(one).localeCompare(ruleIdOf(other)));
}

function rulesIn(policy: string, document: PolicyDocument): readonly Rule[] {
  const read = readRules(policy, document);
  if (read.kind === "no_rule") throw new Error(`the policy ${read.why}`);
  return byTier(read.rules);
}

describe("a rule", () => {
  it("is the same after it was a policy, with all that stand beside it", () => {
    fc.assert(
      fc.property(families, (rules) => {
        // As the store gives it back.
        const document = JSON.parse(JSON.stringify(documentOf(rules))) as PolicyDocument;
        expect(rulesIn(rules[0]!.policy, document)).toEqual(byTier(rules));
      }),
    );
  });

  it("is changed and deleted alone", () => {
    fc.assert(
      fc.property(families, fc.nat(), fc.integer({ min: 1, max: 50_000 }), (rules, which, limit) => {
        const at = which % rules.length;
        const burst = withBurst.has(rules[at]!.algorithm) ? rules[at]!.burst : limit;
        // A burst that takes more than a century to flow out again is no policy.
        fc.pre((burst * rules[at]!.windowSeconds) / limit <= 3e9);
        const changed: Rule = { ...rules[at]!, name: "another", limit, burst };
        const others = rules.filter((_, index) => index !== at);
        const document = writeRule(documentOf(rules), changed);
        expect(rulesIn(changed.policy, document)).toEqual(byTier([...others, changed]));
        if (changed.tier === undefined) return;
        expect(rulesIn(changed.policy, removeTier(document, changed.policy, changed.tier))).toEqual(byTier(others));
      }),
    );
  });

  it.each([dimensionWords, scopeWords])("is read as it is told, in the words of $path", (words) => {
    fc.assert(
      fc.property(families, (rules) => {
        for (const rule of rules) {
          const told = JSON.parse(JSON.stringify({ ...words.render(rule), version: 3, created_at: "x" }));
          const read = readShape(words.replaced, told);
          expect(read).toMatchObject({
            ok: true,
            value: {
              ruleId: ruleIdOf(rule),
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
          expect(splitRuleId(ruleIdOf(rule))).toEqual({ policy: rule.policy, tier: rule.tier });
        }
      }),
    );
  });
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

function limiterOf(...documents: readonly PolicyDocument[]): { limiter: Limiter; subjects: MemorySubjectDirectory } {
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
  it("limits each value of its dimension by itself, at its endpoint and nowhere else", () => {
    const { limiter } = limiterOf(documentOf([base]));
    const endpoint = "/v1/orders/7";
    expect(passing(limiter, { user: "a", endpoint })).toBe(3);
    expect(passing(limiter, { user: "b", endpoint })).toBe(3);
    expect(passing(limiter, { user: "a", endpoint: "/v1/users" })).toBe(20);
    // Who has no user is not spoken of.
    expect(passing(limiter, { ip: "203.0.113.7", endpoint })).toBe(20);
  });

  it("limits one value alone where it names one", () => {
    const { limiter } = limiterOf(documentOf([{ ...base, value: "a" }]));
    const endpoint = "/v1/orders/7";
    expect(passing(limiter, { user: "a", endpoint })).toBe(3);
    expect(passing(limiter, { user: "b", endpoint })).toBe(20);
  });

  it("limits every request of its dimension where it names no endpoint", () => {
    const { limiter } = limiterOf(documentOf([{ ...base, endpoint: "*" }]));
    expect(passing(limiter, { user: "a" })).toBe(3);
    expect(passing(limiter, { user: "b", endpoint: "/anything" })).toBe(3);
  });

  it("limits those of a tier by the tier's rule, and everybody else by the one without", () => {
    const { limiter, subjects } = limiterOf(documentOf([base, { ...base, tier: "premium", limit: 7, burst: 7 }]));
    subjects.setTier("user", "p", "premium");
    subjects.setTier("user", "f", "free");
    const endpoint = "/v1/orders/7";
    expect(passing(limiter, { user: "p", endpoint })).toBe(7);
    expect(passing(limiter, { user: "f", endpoint })).toBe(3);
    expect(passing(limiter, { user: "nobody", endpoint })).toBe(3);
  });

  it("lets as much come at once as its burst says", () => {
    const { limiter } = limiterOf(documentOf([{ ...base, algorithm: "token_bucket", burst: 5 }]));
    expect(passing(limiter, { user: "a", endpoint: "/v1/orders" })).toBe(5);
  });
});

describe("a change of a rule", () => {
  it("keeps all of the policy that no rule speaks of", () => {
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
    ["asks for no dimension in its match", { limits }],
    ["asks for user, tenant in its match", { match: { user: "*", tenant: "t" }, limits }],
    ["asks for user in its match", { match: { user: ["a", "b"] }, limits }],
    ["is for the methods POST alone", { match: { ...match, method: "POST" }, limits }],
    ["is of the domain shop", { domain: "shop", match, limits }],
    ["is in shadow mode", { mode: "shadow", match, limits }],
    ["is without limits", { match, unlimited: true }],
    ["has an allow list", { match, limits, allow: { user: ["a"] } }],
    ["has a deny list", { match, limits, deny: { user: ["a"] } }],
    ["says what requests cost", { match, limits, cost: 2 }],
    ["has a moment from which it is valid", { match, limits, valid_from: "2027-01-01" }],
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

  it("is the default one", () => {
    expect(readRules("default", { limits })).toMatchObject({ kind: "no_rule" });
  });
});

describe("what no two rules share", () => {
  it.each([
    [{ endpoint: "/V1/Orders/{id}/" }, { endpoint: "/v1/orders/*" }],
    [
      { dimension: "ip", value: "2001:DB8::0:1" },
      { dimension: "ip", value: "2001:db8::1" },
    ],
  ])("is the same for all spellings: %j, %j", (one, other) => {
    expect(ruleKeyOf({ ...base, ...one })).toBe(ruleKeyOf({ ...base, ...other }));
  });

  it.each([{ dimension: "ip" }, { value: "a" }, { endpoint: "/v1/orders" }])("differs by %j", (other) => {
    expect(ruleKeyOf({ ...base, ...other })).not.toBe(ruleKeyOf(base));
  });
});
