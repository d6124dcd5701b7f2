import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { renderProblem, SluiceError } from "../errors.ts";
import { defaultPolicy, parsePolicies } from "./parse-policies.ts";
import type { Limit, Policy } from "./policy.ts";

const limits = [{ windows: "10/s" }];

function findProblems(document: unknown): string[] {
  try {
    parsePolicies(document);
    return [];
  } catch (error) {
    if (!(error instanceof SluiceError)) throw error;
    expect(error.code).toBe("invalid_policies");
    return error.problems.map(renderProblem);
  }
}

function parseOne(policy: Record<string, unknown>): Policy {
  return parsePolicies({ policies: [{ id: "p", limits, ...policy }] }).policies[0]!;
}

function parseLimit(limit: Record<string, unknown>): Limit {
  return parseOne({ limits: [limit] }).limits[0]!;
}

/** Problems of a policy that would be fine without these keys. */
function policyProblems(policy: Record<string, unknown>): string[] {
  return findProblems({ policies: [{ id: "p", limits, ...policy }] }).map((text) => text.replace("policies[0].", ""));
}

function limitProblems(limit: Record<string, unknown>): string[] {
  return policyProblems({ limits: [{ windows: "10/s", ...limit }] }).map((text) => text.replace("limits[0].", ""));
}

describe("parsePolicies", () => {
  it("fills in every default", () => {
    expect(parsePolicies({ policies: [{ id: "p", limits: [{ windows: ["10/s"] }] }] })).toEqual({
      kind: "policy_set",
      policies: [
        {
          id: "p",
          version: 1,
          match: { domain: "default", methods: [], dimensions: {} },
          limits: [
            {
              by: [],
              algorithm: "gcra",
              windows: [{ limit: 10, per: { kind: "ms", ms: 1_000 }, burst: 10 }],
              tiers: {},
              missing: "share",
              blockForMs: 0,
              blockable: false,
              onChange: "keep",
            },
          ],
          unlimited: false,
          mode: "enforce",
          allow: {},
          deny: {},
          cost: [],
          replaces: [],
          onFailure: "open",
          onFailureChosen: false,
          warnAt: 0.8,
          counters: "auto",
          maxOvershoot: 0.01,
          countDenials: false,
          events: "summary",
        },
      ],
      fallback: defaultPolicy,
      subjects: [],
    });
  });

  it("reads everything that a policy can say", () => {
    const set = parsePolicies({
      $schema: "./policy.schema.json",
      domain: "shop",
      policies: [
        {
          id: "api.read",
          version: 3,
          description: "Reads of orders",
          owner: "orders@example.com",
          match: { endpoint: "/v1/orders/{order}/**", method: ["get", "POST"], tenant: ["a", "b"], user: "*" },
          limits: [
            {
              name: "per-user",
              by: ["tenant", "user"],
              algorithm: "leaky_bucket",
              windows: ["10/s burst 20", { limit: 100, per: "1m", name: "minute" }],
              tiers: { premium: { windows: "100/s" } },
              missing: "deny",
              block_for: "30s",
              blockable: true,
              on_change: "reset",
            },
          ],
          mode: "shadow",
          allow: { ip: ["10.0.0.0/8"], user: "ops" },
          deny: { user: ["mallory"] },
          cost: { "/v1/orders/export": 10, "/v1/orders/**": 2 },
          replaces: "api.old",
          valid_from: "2026-12-01T00:00:00Z",
          rollout: { percent: 10, by: "tenant" },
          on_failure: "local",
          deadline: "25ms",
          warn_at: "90%",
          counters: "leased",
          max_overshoot: "5%",
          count_denials: true,
          events: "each",
        },
        { id: "api.old", domain: "legacy", limits },
      ],
    });
    expect(set.policies[0]).toEqual({
      id: "api.read",
      version: 3,
      description: "Reads of orders",
      owner: "orders@example.com",
      match: {
        domain: "shop",
        endpoint: "/v1/orders/{order}/**",
        methods: ["GET", "POST"],
        dimensions: { tenant: ["a", "b"], user: ["*"] },
      },
      limits: [
        {
          name: "per-user",
          by: ["tenant", "user"],
          algorithm: "leaky_bucket",
          windows: [
            { limit: 10, per: { kind: "ms", ms: 1_000 }, burst: 20 },
            { limit: 100, per: { kind: "ms", ms: 60_000 }, burst: 100, name: "minute" },
          ],
          tiers: { premium: { windows: [{ limit: 100, per: { kind: "ms", ms: 1_000 }, burst: 100 }] } },
          missing: "deny",
          blockForMs: 30_000,
          blockable: true,
          onChange: "reset",
        },
      ],
      unlimited: false,
      mode: "shadow",
      allow: { ip: ["10.0.0.0/8"], user: ["ops"] },
      deny: { user: ["mallory"] },
      cost: [
        { endpoint: "/v1/orders/export", cost: 10 },
        { endpoint: "/v1/orders/**", cost: 2 },
      ],
      replaces: ["api.old"],
      validFromMs: Date.UTC(2026, 11, 1),
      rollout: { percent: 10, by: "tenant" },
      onFailure: "local",
      onFailureChosen: true,
      deadlineMs: 25,
      warnAt: 0.9,
      counters: "leased",
      maxOvershoot: 0.05,
      countDenials: true,
      events: "each",
    });
    expect(set.policies[1]?.match.domain).toBe("legacy");
  });

  it("reads the settings of a policy that fails local", () => {
    const local = [{ by: "ip", windows: "20/m" }];
    const read = parseOne({ on_failure: "local", local_share: "25%", local_limits: local });
    expect(read).toMatchObject({ onFailure: "local", localShare: 0.25 });
    expect(read.localLimits).toEqual([parseLimit({ by: "ip", windows: "20/m" })]);
    expect(parseOne({ on_failure: "local", local_share: 1 }).localShare).toBe(1);
    expect(parseOne({ on_failure: "local" })).not.toHaveProperty("localShare");
    const { fallback } = parsePolicies({ default: { limits, on_failure: "local", local_limits: local } });
    expect(fallback?.localLimits).toHaveLength(1);
  });

  it.each<[Record<string, unknown>, Pick<Policy, "counters" | "maxOvershoot">]>([
    [{ max_overshoot: 0 }, { counters: "auto", maxOvershoot: 0 }],
    [{ max_overshoot: "0%" }, { counters: "auto", maxOvershoot: 0 }],
    [{ max_overshoot: 1 }, { counters: "auto", maxOvershoot: 1 }],
    [{ max_overshoot: "100 %" }, { counters: "auto", maxOvershoot: 1 }],
    [{ max_overshoot: "0.1%" }, { counters: "auto", maxOvershoot: 0.001 }],
    [{ counters: "leased" }, { counters: "leased", maxOvershoot: 0.01 }],
    // What is exact exceeds nothing.
    [{ counters: "exact" }, { counters: "exact", maxOvershoot: 0 }],
    [
      { counters: "exact", max_overshoot: 0.02 },
      { counters: "exact", maxOvershoot: 0.02 },
    ],
  ])("reads of its counters %j", (written, read) => {
    expect(parseOne(written)).toMatchObject(read);
    expect(parsePolicies({ default: { limits, ...written } }).fallback).toMatchObject(read);
  });

  it("takes a policy that only exempts, and one that only denies", () => {
    expect(parsePolicies({ policies: [{ id: "p", unlimited: true }] }).policies[0]?.unlimited).toBe(true);
    expect(parsePolicies({ policies: [{ id: "p", deny: { ip: "10.0.0.1" } }] }).policies[0]?.limits).toEqual([]);
  });

  it("takes one number as the cost of every endpoint", () => {
    expect(parseOne({ cost: 5 }).cost).toEqual([{ endpoint: "/**", cost: 5 }]);
  });

  it("takes a domain from the match, else the policy, else the document, else default", () => {
    expect(parseOne({ match: { domain: "a" } }).match.domain).toBe("a");
    expect(parseOne({ domain: "b" }).match.domain).toBe("b");
    expect(parsePolicies({ domain: "c", policies: [{ id: "p", limits }] }).policies[0]?.match.domain).toBe("c");
    expect(parseOne({}).match.domain).toBe("default");
    expect(policyProblems({ domain: "b", match: { domain: "a" } })).toEqual([
      "match.domain: is a, but the policy's own domain is b; write it once",
    ]);
  });

  it.each([
    ["2026-12-01T00:00:00Z", Date.UTC(2026, 11, 1)],
    ["2026-12-01", Date.UTC(2026, 11, 1)],
    ["2026-12-01T01:30+01:30", Date.UTC(2026, 11, 1)],
    ["2026-11-30 19:00:00.250 -5", Date.UTC(2026, 11, 1, 0, 0, 0, 250)],
    ["2028-02-29T00:00:00Z", Date.UTC(2028, 1, 29)],
    [new Date(1_000), 1_000],
  ])("begins at %s", (written, ms) => {
    expect(parseOne({ valid_from: written }).validFromMs).toBe(ms);
  });

  it.each([
    ["2026-12-01T00:00:00", "must say its time zone"],
    ["2026-02-29", "must be a date and time"],
    ["2026-13-01", "must be a date and time"],
    ["2026-12-01T24:00:00Z", "must be a date and time"],
    ["tomorrow", "must be a date and time"],
    [1_700_000_000, "must be a date and time"],
  ])("does not begin at %s", (written, message) => {
    expect(policyProblems({ valid_from: written }).join()).toContain(message);
  });
});

describe("limits", () => {
  it("count a calendar by fixed windows by default", () => {
    expect(parseLimit({ windows: ["10/day in UTC", "100/month in UTC"] }).algorithm).toBe("fixed_window");
    expect(parseLimit({ windows: ["10/day in UTC", "100 once"] }).algorithm).toBe("fixed_window");
    expect(parseLimit({ windows: ["10/day"] }).algorithm).toBe("gcra");
  });

  it("do not silently mix a calendar with other windows", () => {
    expect(limitProblems({ windows: ["10/day in UTC", "5/s"] })).toEqual([
      "windows: mix calendar windows with others under gcra; put the calendar windows in a separate limit, or write algorithm: fixed_window",
    ]);
    expect(limitProblems({ windows: ["10/day in UTC", "5/s"], algorithm: "fixed_window" })).toEqual([]);
    expect(limitProblems({ windows: "10/day in UTC", algorithm: "gcra" })).toEqual([
      "windows[0].per: is a day or month of the calendar, which needs algorithm fixed_window, not gcra",
    ]);
  });

  it("hold the windows of tiers to the same algorithm", () => {
    const tiers = { premium: { windows: ["100/s burst 200"] } };
    expect(limitProblems({ algorithm: "sliding_window", tiers })).toEqual([
      "tiers.premium.windows[0].burst: does not belong to sliding_window: only gcra, token_bucket, leaky_bucket have a burst; leave it out or change the algorithm",
    ]);
  });

  it.each<[Record<string, unknown>, string]>([
    [{ windows: [] }, "windows: must have 1 to 16 entries, but has 0"],
    [{ windows: Array(17).fill("1/s") }, "windows: must have 1 to 16 entries, but has 17"],
    [{ by: ["user", "user"] }, "by[1]: names the dimension user twice"],
    [{ by: "a b" }, "by: must be the name of a dimension"],
    [{ algorithm: "leaky-bucket" }, "did you mean leaky_bucket?"],
    [{ missing: "ignore" }, "missing: must be one of share, skip, deny"],
    [{ block_for: 5 }, 'block_for: must be a duration with a unit, but is the number 5; write "5s" or "5ms"'],
    [{ name: "a|b" }, "name: must be 1 to 128 letters, digits or . _ -"],
    [{ tiers: { premium: { window: "1/s" } } }, "tiers.premium.window: is not a known key; did you mean windows?"],
    [{ windows: undefined }, "windows: is missing"],
  ])("refuse %j and say why", (limit, message) => {
    expect(limitProblems(limit).join()).toContain(message);
  });
});

describe("endpoint patterns", () => {
  it.each(["/", "/v1", "/v1/*/items", "/v1/{order}/**", "/**", "/v1/caf%C3%A9", "/a.b/~c"])("may be %s", (endpoint) => {
    expect(parseOne({ match: { endpoint } }).match.endpoint).toBe(endpoint);
  });

  it("drop a slash at the end", () => {
    expect(parseOne({ match: { endpoint: "/v1/orders/" } }).match.endpoint).toBe("/v1/orders");
  });

  it.each([
    ["v1/orders", "begins with /"],
    ["/v1/**/items", "** as its last segment only"],
    ["/v1/ord*", "whole segments"],
    ["/v1/{a}b", "whole segments"],
    ["/v1/{}", "whole segments"],
    ["/v1//items", "empty segments"],
    ["/v1/../admin", ". or .."],
    ["/v1?x=1", "without ? or #"],
    ["/a%2Fb/{x}", "must not contain an encoded slash"],
    ["/a;v=1/b", "must not contain an encoded slash, nor a backslash or ;"],
    ["/v1/a b", "spaces"],
  ])("may not be %s", (endpoint, message) => {
    expect(policyProblems({ match: { endpoint } }).join()).toContain(message);
    expect(policyProblems({ cost: { [endpoint]: 5 } }).join()).toContain(message);
  });
});

describe("problems", () => {
  it("are all reported at once, with a summary that shows the first", () => {
    const document = {
      policies: [
        { id: "a b", limts: [] },
        { id: "p", limits: [{ by: ["user"], windws: "1/s" }], on_failure: "opne" },
        { id: "p", limits: [{ windows: "1/x" }], replaces: ["ghost"] },
      ],
      subjects: [{ user: "u1" }],
    };
    expect(findProblems(document)).toEqual([
      "policies[0].limts: is not a known key; did you mean limits?",
      'policies[0].id: must be 1 to 128 letters, digits or . _ : / @ -, but is "a b"',
      "policies[1].limits[0].windws: is not a known key; did you mean windows?",
      'policies[1].on_failure: must be one of open, closed, local, but is "opne"; did you mean open?',
      'policies[2].limits[0].windows: has an unknown unit, "x"; units are ms, s, m, h, d and w',
      "subjects[0]: must have a tier, or limits",
      "policies[2].id: is p, as is policies[1].id; every policy has its own id",
      "policies[2].replaces[0]: is ghost, but no policy has that id",
    ]);
    expect(() => parsePolicies(document)).toThrow(/^8 problems in the policies:\n(.*\n){5} {2}and 3 more$/);
  });

  it.each<[Record<string, unknown>, string]>([
    [{ id: undefined }, "id: is missing"],
    [{ id: "x".repeat(129) }, "id: must have 1 to 128 characters, but has 129"],
    [{ version: 0 }, "version: must be a whole number of at least 1, but is 0"],
    [{ limits: undefined }, "limits: is missing; write a list of limits, or unlimited: true, or a deny list"],
    [{ limits: [] }, "limits: is missing"],
    [{ limits: Array(65).fill({ windows: "1/s" }) }, "limits: must have at most 64 entries, but has 65"],
    [{ unlimited: true }, "unlimited: goes with no limits; leave out either unlimited or limits"],
    [{ match: { methods: "GET" } }, "match.methods: is too like method to be a dimension; did you mean method?"],
    [{ match: { endpont: "/a" } }, "did you mean endpoint?"],
    [{ match: { user: 42 } }, 'match.user: must be a text, but is the number 42; put it in quotes: "42"'],
    [{ match: { method: "*" } }, "match.method: must be an HTTP method such as GET (leave it out to match any)"],
    [{ deny: { user: "*" } }, "deny.user: is *, which lists do not know"],
    [{ domain: "*" }, "domain: must be the name of one domain"],
    [{ cost: 0 }, "cost: must be a whole number from 1 to 100000, but is 0"],
    [{ cost: { "/a": 100_001 } }, '["/a"]: must be a whole number from 1 to 100000, but is 100001'],
    [{ cost: { "/a": 1, "/a/": 2 } }, "is the same as another key, /a"],
    [{ replaces: "p" }, "replaces: names the policy itself"],
    [{ replaces: "q" }, "replaces[0]: is q, but no policy has that id"],
    [{ rollout: { percent: 101, by: "user" } }, "rollout.percent: must be a number from 0 to 100, but is 101"],
    [{ rollout: { percent: "101%", by: "user" } }, "rollout.percent: must be at most 100%"],
    [{ rollout: { percent: 10 } }, "rollout.by: is missing"],
    [{ warn_at: 80 }, "warn_at: must be a number from 0 to 1, but is 80; for 80 percent write 80%"],
    [{ counters: "approximate" }, 'counters: must be one of auto, exact, leased, strong, but is "approximate"'],
    [{ counters: "lease" }, "did you mean leased?"],
    [{ counters: true }, "counters: must be one of auto, exact, leased, strong, but is true"],
    [{ counter: "exact" }, "counter: is not a known key; did you mean counters?"],
    [{ maxOvershoot: 0.1 }, "maxOvershoot: is not a known key; did you mean max_overshoot?"],
    [{ max_overshoot: -0.1 }, "max_overshoot: must be a number from 0 to 1, but is -0.1"],
    [{ max_overshoot: 5 }, "max_overshoot: must be a number from 0 to 1, but is 5; for 5 percent write 5%"],
    [{ max_overshoot: 101 }, "max_overshoot: must be a number from 0 to 1, but is 101"],
    [{ max_overshoot: "150%" }, "max_overshoot: must be at most 100%, but is 150%"],
    [{ max_overshoot: "0.01" }, "max_overshoot: must be a percentage"],
    [{ max_overshoot: null }, "max_overshoot: must be a number from 0 to 1, or a percentage"],
    [
      { counters: "leased", max_overshoot: 0 },
      "max_overshoot: is 0, so that nothing may be leased, and counters is leased; write a share above 0, such as 1%, or counters: exact",
    ],
    [{ counters: "leased", max_overshoot: "0%" }, "max_overshoot: is 0, so that nothing may be leased"],
    [{ warn_at: "180%" }, "warn_at: must be at most 100%"],
    [{ deadline: "2m" }, "deadline: must last from 1ms to 1m"],
    [{ on_failure: "local", local_share: 0 }, "local_share: must be more than 0; to let nothing through, write"],
    [{ on_failure: "local", local_share: 1.5 }, "local_share: must be a number from 0 to 1, but is 1.5"],
    [{ on_failure: "local", local_share: "0%" }, "local_share: must be more than 0"],
    [{ on_failure: "local", local_share: "150%" }, "local_share: must be at most 100%, but is 150%"],
    [{ on_failure: "local", local_share: "half" }, "local_share: must be a percentage"],
    [
      { local_share: 0.5 },
      "local_share: goes with on_failure: local, and on_failure is open; write on_failure: local, or leave it out",
    ],
    [
      { on_failure: "closed", local_limits: [{ by: "ip", windows: "20/m" }] },
      "local_limits: goes with on_failure: local, and on_failure is closed; write on_failure: local, or leave it out",
    ],
    [{ on_failure: "local", local_limits: [] }, "local_limits: must have 1 to 64 entries, but has 0"],
    [{ on_failure: "local", local_limits: [{ windows: "x" }] }, "local_limits[0].windows: must be a window"],
    [
      { on_failure: "local", limits: undefined, unlimited: true, local_limits: [{ windows: "1/s" }] },
      "local_limits: stands in for limits, but the policy has none; write limits, or leave it out",
    ],
    [
      {
        on_failure: "local",
        local_limits: [
          { name: "a", windows: "1/s" },
          { name: "a", by: "x", windows: "1/s" },
        ],
      },
      "local_limits[1].name: is a, as another limit of this policy",
    ],
    [{ mode: "dry-run" }, "mode: must be one of enforce, shadow"],
    [{ onFailure: "open" }, "onFailure: is not a known key; did you mean on_failure?"],
    [
      {
        limits: [
          { name: "a", windows: "1/s" },
          { name: "a", by: "x", windows: "1/s" },
        ],
      },
      "limits[1].name: is a, as another",
    ],
  ])("of a policy with %j say what is wrong", (policy, message) => {
    expect(policyProblems(policy).join("\n")).toContain(message);
  });

  it("do not complain about settings of a fail mode that is only misspelt", () => {
    expect(policyProblems({ on_failure: "lcal", local_share: 0.5 })).toEqual([
      'on_failure: must be one of open, closed, local, but is "lcal"; did you mean local?',
    ]);
    expect(policyProblems({ on_failur: "local", local_share: 0.5 })).toEqual([
      "on_failur: is not a known key; did you mean on_failure?",
    ]);
  });

  it("do not call limits missing that are only misspelt", () => {
    expect(findProblems({ policies: [{ id: "p", limit: limits }] })).toEqual([
      "policies[0].limit: is not a known key; did you mean limits?",
    ]);
  });

  it("do not blame a reference to a policy that is there but cannot be read", () => {
    const document = {
      policies: [
        { id: "a", limits: [{ windows: "x" }] },
        { id: "b", limits, replaces: "a" },
      ],
      subjects: [{ user: "u1", limits: [{ policy: "a", limit: "whatever", windows: "1/s" }] }],
    };
    expect(findProblems(document)).toHaveLength(1);
  });

  it.each([
    [null, "(root): must be an object, but is empty"],
    [[], "(root): must be an object, but is a list"],
    [{}, "policies: is missing; write a list of policies"],
    [{ polices: [] }, "polices: is not a known key; did you mean policies?"],
    [{ policies: {} }, "policies: must be a list, but is an object"],
    [{ policies: Array(100_001).fill(null) }, "policies: must have at most 100000 entries, but has 100001"],
  ])("of the document %j say what is wrong", (document, message) => {
    expect(findProblems(document)).toEqual([message]);
  });

  it("are found in what JSON can do to prototypes", () => {
    const document = JSON.parse(
      '{ "policies": [{ "id": "p", "match": { "__proto__": "x" }, "limits": [{ "windows": "1/s", "tiers": { "__proto__": { "windows": "1/s" } } }] }] }',
    );
    expect(findProblems(document)).toEqual([
      "policies[0].match.__proto__: is not allowed as a name",
      "policies[0].limits[0].tiers.__proto__: is not allowed as a name",
    ]);
  });

  it("are all that comes of nonsense, never another error", () => {
    const key = fc.constantFrom(
      "policies",
      "default",
      "subjects",
      "id",
      "limits",
      "windows",
      "tiers",
      "match",
      "per",
      "x",
    );
    const { document } = fc.letrec((tie) => ({
      document: fc.oneof(
        { maxDepth: 6 },
        fc.anything({
          withDate: true,
          withMap: true,
          withBigInt: true,
          withNullPrototype: true,
          withSparseArray: true,
        }),
        fc.dictionary(key, tie("document")),
        fc.array(tie("document"), { maxLength: 3 }),
        fc.constantFrom("1/s", "p", "none", "100/day in UTC"),
      ),
    }));
    fc.assert(
      fc.property(document, (value) => {
        try {
          parsePolicies(value);
        } catch (error) {
          expect(error).toBeInstanceOf(SluiceError);
          expect((error as SluiceError).problems.length).toBeGreaterThan(0);
        }
      }),
      { numRuns: 1_000 },
    );
  });

  it("leave no way to find a tier that was not written", () => {
    expect(parseLimit({ windows: "1/s" }).tiers.constructor).toBeUndefined();
    expect(parseOne({}).match.dimensions.toString).toBeUndefined();
  });
});

describe("the default", () => {
  it("is 10 a second, 1000 at once, for each subject, by default", () => {
    const { fallback } = parsePolicies({ policies: [] });
    expect(fallback).toBe(defaultPolicy);
    expect(fallback).toMatchObject({ id: "default", onFailure: "open", onFailureChosen: true });
    expect(fallback?.limits).toMatchObject([
      { by: ["subject"], algorithm: "token_bucket", windows: [{ limit: 10, per: { ms: 1_000 }, burst: 1_000 }] },
    ]);
  });

  it.each(["none", "unlimited"])("can be %s", (word) => {
    expect(parsePolicies({ policies: [], default: word }).fallback).toBeUndefined();
  });

  it("can be a policy without id and match", () => {
    const { fallback } = parsePolicies({ default: { limits: [{ by: "ip", windows: "5/s" }], on_failure: "closed" } });
    expect(fallback).toMatchObject({ id: "default", onFailure: "closed", limits: [{ by: ["ip"] }] });
    expect(fallback?.match.dimensions).toEqual({});
    expect(findProblems({ default: { id: "x", limits } })).toHaveLength(1);
    expect(findProblems({ default: {} })).toEqual([
      "default.limits: is missing; write a list of limits, or unlimited: true, or a deny list",
    ]);
  });

  it("never has the id of another policy", () => {
    const policies = [{ id: "default", limits }];
    expect(parsePolicies({ policies }).fallback?.id).toBe("default.fallback");
    expect(parsePolicies({ policies, default: "none" }).fallback).toBeUndefined();
    expect(findProblems({ policies, default: { limits } })).toEqual([
      "policies[0].id: is default, which is the id of the policy under default; choose another",
    ]);
  });
});

describe("subjects", () => {
  const policies = [
    {
      id: "api",
      limits: [
        { name: "per-user", by: ["tenant", "user"], windows: "10/s" },
        { by: "tenant", algorithm: "sliding_window", windows: "100/s" },
      ],
    },
  ];

  it("have tiers, and temporary overrides", () => {
    const set = parsePolicies({
      policies,
      subjects: [
        { user: "u1", tier: "premium" },
        {
          tenant: "acme",
          limits: [{ policy: "api", limit: "per-user", windows: ["50/s burst 60"], until: "2026-12-01T00:00:00Z" }],
        },
        { user: "u2", limits: [{ policy: "default", windows: "1/s" }] },
      ],
    });
    expect(set.subjects).toEqual([
      { dimension: "user", value: "u1", tier: "premium", limits: [] },
      {
        dimension: "tenant",
        value: "acme",
        limits: [
          {
            policy: "api",
            limit: "per-user",
            windows: [{ limit: 50, per: { kind: "ms", ms: 1_000 }, burst: 60 }],
            untilMs: Date.UTC(2026, 11, 1),
          },
        ],
      },
      {
        dimension: "user",
        value: "u2",
        limits: [{ policy: "default", windows: [{ limit: 1, per: { kind: "ms", ms: 1_000 }, burst: 1 }] }],
      },
    ]);
  });

  it.each<[Record<string, unknown>, string]>([
    [{ tier: "premium" }, "subjects[0]: must name a subject by a dimension and its value, such as user: u1"],
    [{ user: "u1" }, "subjects[0]: must have a tier, or limits"],
    [
      { user: "u1", tenant: "a", tier: "x" },
      "subjects[0]: must name one subject, but names user and tenant; write an entry for each",
    ],
    [{ user: "u1", teir: "premium" }, "subjects[0].teir: is a second dimension; did you mean tier?"],
    [{ user: 7, tier: "x" }, 'subjects[0].user: must be a text, but is the number 7; put it in quotes: "7"'],
    [
      { user: "u1", limits: [{ policy: "apy", windows: "1/s" }] },
      "subjects[0].limits[0].policy: is apy, but no policy has that id; did you mean api?",
    ],
    [{ user: "u1", limits: [{ policy: "api", limit: "per-usr", windows: "1/s" }] }, "did you mean per-user?"],
    [{ user: "u1", limits: [{ policy: "api", limit: "zzz", windows: "1/s" }] }, "it has per-user"],
    [
      { tenant: "a", limits: [{ policy: "api", windows: "1/s burst 5" }] },
      "subjects[0].limits[0].windows[0].burst: does not belong to sliding_window",
    ],
    [
      { tenant: "a", limits: [{ policy: "api", limit: "per-user", windows: "5/day in UTC" }] },
      "subjects[0].limits[0].windows[0].per: is a day or month",
    ],
  ])("like %j are refused, and it is said why", (subject, message) => {
    expect(findProblems({ policies, subjects: [subject] }).join("\n")).toContain(message);
  });

  it("are written once each", () => {
    expect(
      findProblems({
        policies,
        subjects: [
          { user: "u1", tier: "a" },
          { user: "u1", tier: "b" },
        ],
      }),
    ).toEqual(["subjects[1]: is user u1, as is subjects[0]; write one entry for both"]);
  });
});
