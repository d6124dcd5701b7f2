import { FailPolicy, Policy as PolicyMessage, RuleType } from "@sluice/protocol";
import fc from "fast-check";
import { createLimiter, ManualClock } from "sluice";
import { describe, expect, it } from "vitest";
import type { PolicyDocument } from "../../control-plane/policy-control.ts";
import {
  documentFromFields,
  fieldsFromDocument,
  mayBeReplacedByFields,
  noFields,
  type PolicyFields,
} from "./policy-fields.ts";
import { documentFromMessage, rolloutFromMessage } from "./policy-message.ts";

const bucketTypes: readonly number[] = [RuleType.GCRA, RuleType.TOKEN_BUCKET, RuleType.LEAKY_BUCKET];

const anyFields: fc.Arbitrary<PolicyFields> = fc
  .record({
    ruleType: fc.integer({ min: 1, max: 6 }),
    windows: fc.array(
      fc.record({
        spanMs: fc.integer({ min: 1_000, max: 86_400_000 }),
        limit: fc.integer({ min: 1, max: 10_000 }),
        burst: fc.option(fc.integer({ min: 1, max: 10_000 }), { nil: undefined }),
      }),
      { minLength: 1, maxLength: 4 },
    ),
    dimensions: fc.uniqueArray(fc.constantFrom("user", "tenant", "ip", "api_key"), { maxLength: 4 }),
    failPolicy: fc.integer({ min: 0, max: 3 }),
    costMap: fc.dictionary(fc.stringMatching(/^\/[a-z]{1,8}$/), fc.integer({ min: 1, max: 1_000 }), { maxKeys: 4 }),
    ownerTeam: fc.constantFrom("", "shop"),
    validFrom: fc.option(
      fc.record({ seconds: fc.integer({ min: 0, max: 4e9 }), nanos: fc.nat(999).map((ms) => ms * 1e6) }),
      { nil: undefined },
    ),
    domain: fc.constantFrom("", "default", "shop"),
  })
  .map(({ windows, ...fields }) => ({
    ...fields,
    windows: windows.map(({ burst, ...window }) => ({
      ...window,
      burst: bucketTypes.includes(fields.ruleType) && burst !== window.limit ? burst : undefined,
    })),
  })) as fc.Arbitrary<PolicyFields>;

function createMessage(fields: Partial<PolicyMessage>): PolicyMessage {
  return PolicyMessage.fromPartial({ policyId: "api.read.v3", ...fields });
}

describe("the fields of a policy", () => {
  it("are the same after conversion to a document and back", () => {
    fc.assert(
      fc.property(anyFields, (fields) => {
        const document = JSON.parse(JSON.stringify(documentFromFields("p", fields))) as PolicyDocument;
        expect(fieldsFromDocument("p", document)).toEqual(fields);
      }),
    );
  });

  it("count each dimension separately, with all windows, for requests that name the policy and for no others", () => {
    const fields: PolicyFields = {
      ...noFields,
      ruleType: RuleType.FIXED_WINDOW,
      windows: [
        { spanMs: 1_000, limit: 3, burst: undefined },
        { spanMs: 60_000, limit: 5, burst: undefined },
      ],
      dimensions: ["user", "tenant"],
      costMap: { "/embed": 2 },
    };
    const clock = new ManualClock(1_700_000_040_000);
    const policies = { policies: [documentFromFields("api.read.v3", fields)], default: "none" };
    const limiter = createLimiter({ policies, clock });
    const check = (user: string, tenant: string, endpoint = "/list"): boolean =>
      limiter.checkSync({ policies: ["api.read.v3"], dimensions: { user, tenant, endpoint } }).allowed;
    expect([check("a", "t"), check("a", "t"), check("a", "t"), check("a", "t")]).toEqual([true, true, true, false]);
    // The tenant has used its three of this second, whatever the user.
    expect(check("b", "t")).toBe(false);
    expect(check("b", "u")).toBe(true);
    clock.advance(1_000);
    // Two are left of the minute, which is one request of cost 2.
    expect([check("a", "t", "/embed"), check("a", "t")]).toEqual([true, false]);
    const unnamed = Array.from({ length: 10 }, () => limiter.checkSync({ dimensions: { user: "a", tenant: "t" } }));
    expect(unnamed.every(({ allowed }) => allowed)).toBe(true);
  });

  it("count a user within its tenant, and keep users of the same name in two tenants apart", () => {
    const fields = {
      ...noFields,
      ruleType: RuleType.FIXED_WINDOW,
      windows: [{ spanMs: 60_000, limit: 3, burst: undefined }],
    };
    const decide = (dimensions: string[]) => {
      const limiter = createLimiter({ policies: { policies: [documentFromFields("p", { ...fields, dimensions })] } });
      return (user: string, tenant: string, cost: number) =>
        limiter.checkSync({ policies: ["p"], dimensions: { user, tenant, ip: "203.0.113.7" }, cost, details: true });
    };
    const check = decide(["tenant", "user"]);
    expect(check("u1", "one", 3).allowed).toBe(true);
    const other = check("u1", "two", 3);
    expect(other.allowed).toBe(true);
    expect(other.limits?.map(({ scope, subject }) => [scope, subject])).toEqual([
      ["tenant", "two"],
      ["user", "two|u1"],
    ]);
    // Without the tenant it cannot be counted.
    const alone = decide(["user"]);
    expect([alone("u1", "one", 3).allowed, alone("u1", "two", 3).allowed]).toEqual([true, false]);
    // An address has no tenant.
    const byAddress = decide(["tenant", "ip"]);
    expect([byAddress("u1", "one", 3).allowed, byAddress("u1", "two", 3).allowed]).toEqual([true, false]);
  });

  it("may replace a policy that counted users across tenants, and do not claim to express all of it", () => {
    const limits = [
      { by: ["user"], windows: ["3/m"] },
      { by: ["tenant"], windows: ["3/m"] },
    ];
    expect(fieldsFromDocument("p", { limits })).toBeUndefined();
    expect(mayBeReplacedByFields("p", { limits })).toBe(true);
    expect(mayBeReplacedByFields("p", { limits, deny: { user: "u" } })).toBe(false);
  });

  it("are one counter for all requests if no dimension is named", () => {
    const fields = { ...noFields, windows: [{ spanMs: 60_000, limit: 1, burst: undefined }] };
    expect(documentFromFields("p", fields)).toMatchObject({ limits: [{ windows: [{ limit: 1, per: "1m" }] }] });
    expect(fieldsFromDocument("p", documentFromFields("p", fields))).toMatchObject({ dimensions: [] });
  });

  it.each<[string, PolicyDocument]>([
    ["a match", { match: { user: "*" }, limits: [{ windows: ["1/s"] }] }],
    ["an endpoint", { match: { endpoint: "/x" }, limits: [{ windows: ["1/s"] }] }],
    ["a deny list", { deny: { user: "u" }, limits: [{ windows: ["1/s"] }] }],
    ["a description", { description: "what for", limits: [{ windows: ["1/s"] }] }],
    ["tiers", { limits: [{ by: ["user"], windows: ["1/s"], tiers: { gold: { windows: ["2/s"] } } }] }],
    ["a name of its limit", { limits: [{ name: "n", windows: ["1/s"] }] }],
    [
      "windows that differ",
      {
        limits: [
          { by: ["a"], windows: ["1/s"] },
          { by: ["b"], windows: ["2/s"] },
        ],
      },
    ],
    ["two dimensions together", { limits: [{ by: ["a", "b"], windows: ["1/s"] }] }],
    [
      "a dimension twice",
      {
        limits: [
          { by: ["a"], windows: ["1/s"] },
          { by: ["a"], windows: ["1/s"] },
        ],
      },
    ],
    ["a calendar window", { limits: [{ windows: ["1/day in UTC"] }] }],
    ["shadow mode", { mode: "shadow", limits: [{ windows: ["1/s"] }] }],
    ["what it replaces", { replaces: ["q"], limits: [{ windows: ["1/s"] }] }],
    ["a deadline", { deadline: "1s", limits: [{ windows: ["1/s"] }] }],
    ["that its counters are exact", { counters: "exact", limits: [{ windows: ["1/s"] }] }],
    ["that they are leased", { counters: "leased", limits: [{ windows: ["1/s"] }] }],
    ["that leases exceed nothing", { max_overshoot: 0, limits: [{ windows: ["1/s"] }] }],
    ["another share that leases may exceed", { max_overshoot: "5%", limits: [{ windows: ["1/s"] }] }],
    ["another share to warn at", { warn_at: 0.5, limits: [{ windows: ["1/s"] }] }],
  ])("cannot express %s", (_, document) => {
    expect(fieldsFromDocument("p", { id: "p", ...document })).toBeUndefined();
  });
});

describe("a policy that is sent", () => {
  const windows = [{ spanMs: 1_000, limit: 100, burst: undefined }];

  it("may have a document and fields that agree", () => {
    fc.assert(
      fc.property(anyFields, (fields) => {
        const document = documentFromFields("api.read.v3", fields);
        const documentJson = JSON.stringify(document);
        expect(documentFromMessage(createMessage({ ...fields, documentJson }))).toEqual(JSON.parse(documentJson));
      }),
    );
  });

  it.each<[string, Partial<PolicyMessage>]>([
    ["windows", { windows: [{ spanMs: 1_000, limit: 200, burst: undefined }] }],
    ["dimensions", { windows, dimensions: ["user"] }],
    ["cost_map", { windows, costMap: { "/embed": 10 } }],
    ["fail_policy", { windows, failPolicy: FailPolicy.CLOSED }],
    ["owner_team", { windows, ownerTeam: "other" }],
    ["domain", { windows, domain: "shop" }],
  ])("is refused if the document disagrees with %s", (field, sent) => {
    const documentJson = JSON.stringify({
      ...documentFromFields("api.read.v3", { ...noFields, windows }),
      owner: "shop",
    });
    expect(() => documentFromMessage(createMessage({ ...sent, documentJson }))).toThrow(
      new RegExp(`${field}: disagrees with document_json`),
    );
  });

  it.each<[string, Partial<PolicyMessage>]>([
    ["policy_id: is missing", { policyId: "", windows }],
    ["policy_id: must be", { policyId: "a b", windows }],
    ["windows: is empty", {}],
    ["windows[0].span_ms: must be 1 or more", { windows: [{ spanMs: 0, limit: 1, burst: undefined }] }],
    ["windows[0].limit: must be", { windows: [{ spanMs: 1_000, limit: 1e13, burst: undefined }] }],
    [
      "windows[0].burst: does not belong",
      { ruleType: RuleType.FIXED_WINDOW, windows: [{ spanMs: 1_000, limit: 1, burst: 2 }] },
    ],
    ["dimensions[1]", { windows, dimensions: ["user", "not a name"] }],
    ["rule_type: must be", { windows, ruleType: 99 as RuleType }],
    ["fail_policy: must be", { windows, failPolicy: 99 as FailPolicy }],
    ["rollout_pct: must be", { windows, rolloutPct: 1.5 }],
    ["rollout_pct: must be", { windows, rolloutPct: Number.NaN }],
    ["rollout_pct: must be", { windows, rolloutPct: 0 }],
    ["rollout_pct: must be", { windows, rolloutPct: 0.00015 }],
    ["cost_map", { windows, costMap: { embed: 1 } }],
    ["document_json: is not JSON", { documentJson: "{" }],
    ["document_json: must be an object", { documentJson: "[]" }],
  ])("is refused with the field's name: %s", (message, sent) => {
    expect(() => documentFromMessage(createMessage(sent))).toThrow(message);
  });

  it("is rolled out to its share of subjects, and manually after that", () => {
    expect(rolloutFromMessage(createMessage({ rolloutPct: 0.07 }))).toMatchObject({
      steps: [{ percent: 7, holdMs: 0 }, { percent: 100 }],
    });
    expect(rolloutFromMessage(createMessage({ rolloutPct: 1 }))).toBeUndefined();
    expect(rolloutFromMessage(createMessage({}))).toBeUndefined();
  });
});
