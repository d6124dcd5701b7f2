import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { ManualClock } from "../clock.ts";
import { createLimiter } from "../create-limiter.ts";
import type { Window } from "../policy/policy.ts";
import type { Decision, LimitDecision } from "./decision.ts";
import { type HeaderGeneration, headerGenerations, nameLimits, renderHeaders } from "./render-headers.ts";

const perMinute: Window = { limit: 100, per: { kind: "ms", ms: 60_000 }, burst: 100 };

const allowed: Decision = {
  allowed: true,
  reason: "within_limits",
  cost: 1,
  policy: "api.read",
  version: 3,
  scope: "tenant",
  window: perMinute,
  limit: 100,
  remaining: 50,
  limitRemaining: 50,
  used: 50,
  retryAfterMs: undefined,
  resetAfterMs: 29_400,
  resetAtMs: 1_700_000_029_400,
  moreAfterMs: 400,
  queue: undefined,
  state: "normal",
  denyCount: 0,
  replayed: false,
  preview: false,
  degraded: undefined,
  shadow: [],
  limits: undefined,
  receipt: undefined,
};

const denied: Decision = {
  ...allowed,
  allowed: false,
  reason: "over_limit",
  remaining: 0,
  limitRemaining: 0,
  used: 100,
  retryAfterMs: 600,
  resetAfterMs: 60_000,
  resetAtMs: 1_700_000_060_000,
  moreAfterMs: undefined,
  state: "throttled",
  denyCount: 1,
};

const withoutLimit: Decision = {
  ...allowed,
  reason: "unlimited",
  policy: undefined,
  version: undefined,
  scope: undefined,
  window: undefined,
  limit: undefined,
  remaining: undefined,
  limitRemaining: undefined,
  used: undefined,
  resetAfterMs: undefined,
  resetAtMs: undefined,
  moreAfterMs: undefined,
};

const limitDecision = (fields: Partial<LimitDecision>): LimitDecision => ({
  policy: "api.read",
  version: 3,
  scope: "tenant",
  subject: "acme",
  algorithm: "gcra",
  allowed: true,
  reason: "within_limits",
  window: perMinute,
  cost: 1,
  limit: 100,
  remaining: 50,
  used: 50,
  retryAfterMs: undefined,
  resetAfterMs: 29_400,
  queue: undefined,
  shadow: false,
  ...fields,
});

const render = (decision: Decision, ...generations: HeaderGeneration[]): Record<string, string> =>
  renderHeaders(decision, { generations });

describe("the legacy generation", () => {
  it("shows limit, remaining, reset in epoch seconds rounded up, policy and scope", () => {
    expect(render(allowed, "legacy")).toEqual({
      "X-RateLimit-Limit": "100",
      "X-RateLimit-Remaining": "50",
      "X-RateLimit-Reset": "1700000030",
      "X-RateLimit-Policy": "api.read",
      "X-RateLimit-Scope": "tenant",
    });
  });

  it("warns in a short sentence when the state is warning", () => {
    const warned = render({ ...allowed, state: "warning", used: 80.9, remaining: 19 }, "legacy");
    expect(warned["X-RateLimit-Warning"]).toBe("80 % of tenant used");
    expect(render({ ...denied, state: "throttled" }, "legacy")).not.toHaveProperty("X-RateLimit-Warning");
  });

  it("says when the answer is degraded, and why", () => {
    expect(render({ ...allowed, reason: "degraded", degraded: "storage_unavailable" }, "legacy")).toMatchObject({
      "X-RateLimit-Limit": "100",
      "X-RateLimit-Degraded": "true",
      "X-RateLimit-Degraded-Reason": "storage_unavailable",
    });
  });

  it("does not let a reset lie before the end of a block", () => {
    const blocked: Decision = { ...denied, reason: "blocked", retryAfterMs: 300_000 };
    expect(render(blocked, "legacy")["X-RateLimit-Reset"]).toBe("1700000300");
  });

  it("leaves the reset out if there is none", () => {
    const never = { ...allowed, resetAfterMs: Number.POSITIVE_INFINITY, resetAtMs: Number.POSITIVE_INFINITY };
    expect(render(never, "legacy")).not.toHaveProperty("X-RateLimit-Reset");
  });
});

describe("the draft generations", () => {
  it("are three fields up to draft 6, the reset in seconds from now", () => {
    expect(render(allowed, "draft6")).toEqual({
      "RateLimit-Limit": "100",
      "RateLimit-Remaining": "50",
      "RateLimit-Reset": "30",
    });
  });

  it("are one field and a policy in draft 7", () => {
    expect(render(allowed, "draft7")).toEqual({
      RateLimit: "limit=100, remaining=50, reset=30",
      "RateLimit-Policy": "100;w=60",
    });
  });

  it("are named items in draft 11", () => {
    expect(render(allowed, "draft11")).toEqual({
      "RateLimit-Policy": '"api.read/tenant";q=100;w=60',
      RateLimit: '"api.read/tenant";r=50;t=1',
    });
  });

  it("are legacy and draft 11 by default", () => {
    expect(renderHeaders(allowed)).toEqual(render(allowed, "legacy", "draft11"));
    expect(renderHeaders(allowed)).toHaveProperty(["X-RateLimit-Limit"]);
    expect(renderHeaders(allowed)).toHaveProperty(["RateLimit"]);
  });

  it("are not mixed if draft 7 and 11 share a field name: draft 11 is written", () => {
    expect(render(allowed, "draft11", "draft7")).toEqual(render(allowed, "draft11"));
  });

  it.each<[Window["per"], string]>([
    [{ kind: "ms", ms: 100 }, ";w=1"],
    [{ kind: "ms", ms: 500 }, ";w=1"],
    [{ kind: "ms", ms: 1900 }, ";w=2"],
    [{ kind: "calendar", unit: "day", timeZone: "UTC" }, ";w=86400"],
    [{ kind: "calendar", unit: "month", timeZone: "UTC" }, ";w=2592000"],
    [{ kind: "never" }, ""],
  ])("write the window %j as %j", (per, written) => {
    const decision = { ...allowed, window: { ...perMinute, per } };
    expect(render(decision, "draft11")["RateLimit-Policy"]).toBe(`"api.read/tenant";q=100${written}`);
    expect(render(decision, "draft7")["RateLimit-Policy"]).toBe(written === "" ? undefined : `100${written}`);
  });

  it("leave the effective window of a one-off quota out", () => {
    const once = {
      ...allowed,
      window: { ...perMinute, per: { kind: "never" } },
      resetAfterMs: Infinity,
      moreAfterMs: undefined,
    } as Decision;
    expect(render(once, "draft11").RateLimit).toBe('"api.read/tenant";r=50');
    expect(render(once, "draft7").RateLimit).toBe("limit=100, remaining=50");
    expect(render(once, "draft6")).not.toHaveProperty("RateLimit-Reset");
  });

  it("give a burst the time that it takes to come back", () => {
    const policy = (limit: number, ms: number, burst: number): string | undefined => {
      const window: Window = { limit, per: { kind: "ms", ms }, burst };
      return render({ ...allowed, window, limit: burst, remaining: 1 }, "draft11")["RateLimit-Policy"];
    };
    expect(policy(100, 1000, 200)).toBe('"api.read/tenant";q=200;w=2');
    expect(policy(3000, 60_000, 50)).toBe('"api.read/tenant";q=50;w=1');
    expect(policy(16.67, 1000, 16.67)).toBe('"api.read/tenant";q=16;w=1');
    expect(policy(0.3, 1000, 2.1)).toBe('"api.read/tenant";q=2;w=7');
    expect(policy(0.1, 1000, 0.3)).toBe('"api.read/tenant";q=0;w=3');
    expect(policy(0, 1000, 100)).toBe('"api.read/tenant";q=100');
  });

  it("promise no more than the limit in the long run, and no more remaining than there is", () => {
    const amount = fc.double({ min: 0.01, max: 1e6, noNaN: true });
    fc.assert(
      fc.property(amount, amount, fc.integer({ min: 1, max: 1e9 }), (limit, burst, ms) => {
        const window: Window = { limit, per: { kind: "ms", ms }, burst };
        const headers = render({ ...allowed, window, limit: burst, limitRemaining: Math.floor(burst) }, "draft11");
        const [, q, w] = /;q=(\d+);w=(\d+)$/.exec(headers["RateLimit-Policy"]!)!;
        const [, r] = /;r=(\d+);/.exec(headers.RateLimit!)!;
        expect(Number(q) / Number(w)).toBeLessThanOrEqual((limit / (ms / 1000)) * (1 + 1e-6));
        expect(Number(r)).toBeLessThanOrEqual(Number(q));
      }),
    );
  });
});

describe("one name means one policy", () => {
  const renderEach = (limits: readonly unknown[], costs: readonly number[]): Record<string, string>[] => {
    const clock = new ManualClock(1_750_000_000_000);
    const limiter = createLimiter({ clock, policies: { policies: [{ id: "api", limits }] } });
    return costs.map((cost) => {
      clock.advance(700);
      return renderHeaders(limiter.checkSync({ dimensions: { user: "u" }, cost }), { generations: ["draft11"] });
    });
  };

  it("even if a limit has several windows: each has its own name", () => {
    const [first, , third] = renderEach([{ by: ["user"], windows: ["3/s", "5/m"] }], [1, 1, 1, 1]);
    expect(first).toEqual({ "RateLimit-Policy": '"api/user/1s";q=3;w=1', RateLimit: '"api/user/1s";r=2;t=1' });
    expect(third).toEqual({ "RateLimit-Policy": '"api/user/1m";q=5;w=60', RateLimit: '"api/user/1m";r=2;t=11' });
  });

  it("even if two limits have the same scope, and windows of the same length", () => {
    const limits = [
      { by: ["user"], windows: ["60/m burst 5"] },
      { by: ["user"], algorithm: "fixed_window", windows: ["6/m"] },
    ];
    const names = renderEach(limits, [1, 1, 1, 1, 1]).map((headers) => headers["RateLimit-Policy"]);
    expect(new Set(names)).toEqual(new Set(['"api/user/1m";q=5;w=5', '"api/user/1m#2";q=6;w=60']));
  });

  it("names a window as the policy does, and one that is alone by policy and scope", () => {
    const named = [{ by: ["user"], windows: [{ limit: 3, per: "1s", name: "peak" }, "5/m"] }];
    expect(renderEach(named, [1])[0]?.RateLimit).toMatch(/^"api\/user\/peak";/);
    expect(renderEach([{ by: ["user"], windows: ["5/m"] }], [1])[0]?.RateLimit).toMatch(/^"api\/user";/);
  });

  it("for random limits, over whole conversations", () => {
    const window = fc
      .record({ limit: fc.integer({ min: 1, max: 9 }), per: fc.constantFrom("s", "7s", "m") })
      .map(({ limit, per }) => `${limit}/${per}`);
    const limit = fc.record({
      by: fc.constantFrom(["user"], ["tenant"]),
      algorithm: fc.constantFrom("gcra", "fixed_window", "sliding_window"),
      windows: fc.array(window, { minLength: 1, maxLength: 3 }),
    });
    const costs = fc.array(fc.integer({ min: 1, max: 4 }), { minLength: 1, maxLength: 12 });
    const limitKey = ({ by, algorithm }: { by: readonly string[]; algorithm: string }): string => `${by} ${algorithm}`;
    const limits = fc.uniqueArray(limit, { minLength: 1, maxLength: 4, selector: limitKey });
    fc.assert(
      fc.property(limits, costs, (given, asked) => {
        const quotas = new Map<string, string>();
        for (const headers of renderEach(given, asked)) {
          const [, name = "", quota = ""] = /^("[^"]*")(.*)$/.exec(headers["RateLimit-Policy"] ?? "") ?? [];
          expect(quotas.get(name) ?? quota, name).toBe(quota);
          quotas.set(name, quota);
          expect(headers.RateLimit?.startsWith(`${name};r=`)).toBe(true);
        }
      }),
    );
  });
});

describe("decisions with details", () => {
  const hourly: Window = { limit: 1000, per: { kind: "ms", ms: 3_600_000 }, burst: 1000 };
  const limits = [
    limitDecision({ scope: "tenant,user", window: hourly, limit: 1000, remaining: 999 }),
    limitDecision({}),
    limitDecision({ policy: "beta", shadow: true, allowed: false, remaining: 0 }),
    limitDecision({ algorithm: "fixed_window", remaining: 70, used: 30 }),
  ];

  it("list every limit that can deny, under names that differ, and let the right one speak", () => {
    expect(render({ ...allowed, limits }, "draft11")).toEqual({
      "RateLimit-Policy":
        '"api.read/tenant,user";q=1000;w=3600, "api.read/tenant";q=100;w=60, "api.read/tenant#2";q=100;w=60',
      RateLimit: '"api.read/tenant";r=50;t=1',
    });
    expect(render({ ...allowed, limits, limitRemaining: 70, used: 30 }, "draft11").RateLimit).toBe(
      '"api.read/tenant#2";r=70;t=1',
    );
    expect(render({ ...allowed, limits }, "draft7")["RateLimit-Policy"]).toBe("1000;w=3600, 100;w=60, 100;w=60");
  });

  it("let a limit that denied speak for a denial, not one that stands the same", () => {
    const same = [
      limitDecision({ remaining: 0, used: 100 }),
      limitDecision({ remaining: 0, used: 100, allowed: false, cost: 5 }),
    ];
    expect(render({ ...denied, limits: same }, "draft11").RateLimit).toBe('"api.read/tenant#2";r=0;t=1');
  });

  it("keep a short list however many limits apply, and the one that speaks in it", () => {
    const many = Array.from({ length: 40 }, (_, index) =>
      limitDecision({ scope: `s${index}`, remaining: index, used: 100 - index }),
    );
    const named = nameLimits({ ...allowed, limits: many, scope: "s39", limitRemaining: 39, used: 61 });
    expect(named).toHaveLength(16);
    expect(named.filter((one) => one.speaks).map((one) => one.name)).toEqual(["api.read/s39"]);
  });

  it("still name the deciding limit if the details do not have it", () => {
    const headers = render({ ...allowed, limits: [limitDecision({ scope: "ip" })] }, "draft11");
    expect(headers["RateLimit-Policy"]).toBe('"api.read/ip";q=100;w=60, "api.read/tenant";q=100;w=60');
    expect(headers.RateLimit).toBe('"api.read/tenant";r=50;t=1');
  });
});

describe("Retry-After", () => {
  it("is there on a denial that passes later, whatever the generations", () => {
    expect(render(denied)).toEqual({ "Retry-After": "1" });
    expect(renderHeaders(denied)["Retry-After"]).toBe("1");
    expect(renderHeaders({ ...denied, reason: "blocked", retryAfterMs: 2001 })["Retry-After"]).toBe("3");
  });

  it("is there when the counters cannot be asked and the policy is closed", () => {
    const closed: Decision = {
      ...withoutLimit,
      allowed: false,
      reason: "degraded",
      degraded: "storage_overloaded",
      retryAfterMs: 1_000,
    };
    expect(renderHeaders(closed)).toEqual({
      "Retry-After": "1",
      "X-RateLimit-Degraded": "true",
      "X-RateLimit-Degraded-Reason": "storage_overloaded",
    });
  });

  it.each<Partial<Decision>>([
    { allowed: true, reason: "within_limits" },
    { reason: "never_fits", retryAfterMs: undefined },
    { reason: "never_fits" },
    { reason: "deny_list" },
    { reason: "missing_dimension" },
    { reason: "over_limit", retryAfterMs: undefined },
    { reason: "over_limit", retryAfterMs: Number.POSITIVE_INFINITY },
  ])("is absent for %j, because waiting does not help", (fields) => {
    expect(renderHeaders({ ...denied, ...fields })).not.toHaveProperty("Retry-After");
  });

  it("is jittered by the random source; the drafts' reset is exact", () => {
    const decision = { ...denied, retryAfterMs: 60_000 };
    const headers = renderHeaders(decision, { generations: headerGenerations, random: () => 0.999 });
    expect(headers["Retry-After"]).toBe("66");
    expect(headers.RateLimit).toBe('"api.read/tenant";r=0;t=60');
    expect(headers["RateLimit-Reset"]).toBe("60");
  });

  it("is 1 to 5 seconds in an outage, and uncounted values are left out", () => {
    const { remaining, limitRemaining, used, resetAfterMs, resetAtMs } = withoutLimit;
    const uncounted = { remaining, limitRemaining, used, resetAfterMs, resetAtMs };
    const closed: Decision = {
      ...denied,
      ...uncounted,
      reason: "degraded",
      degraded: "storage_timeout",
      retryAfterMs: 1_000,
    };
    const waits = [0, 0.3, 0.5, 0.7, 0.999].map(
      (value) => renderHeaders(closed, { random: () => value })["Retry-After"],
    );
    expect(waits).toEqual(["1", "2", "3", "4", "5"]);
    expect(renderHeaders(closed, { generations: headerGenerations })).toEqual({
      "Retry-After": "1",
      "X-RateLimit-Limit": "100",
      "X-RateLimit-Policy": "api.read",
      "X-RateLimit-Scope": "tenant",
      "X-RateLimit-Degraded": "true",
      "X-RateLimit-Degraded-Reason": "storage_timeout",
      "RateLimit-Policy": '"api.read/tenant";q=100;w=60',
    });
  });
});

describe("decisions without a limit", () => {
  it("have no header fields", () => {
    expect(renderHeaders(withoutLimit, { generations: headerGenerations })).toEqual({});
    expect(renderHeaders({ ...withoutLimit, allowed: false, reason: "deny_list", policy: "bad" })).toEqual({});
  });

  it("still say that they are degraded", () => {
    expect(renderHeaders({ ...withoutLimit, reason: "degraded", degraded: "storage_timeout" })).toEqual({
      "X-RateLimit-Degraded": "true",
      "X-RateLimit-Degraded-Reason": "storage_timeout",
    });
  });
});

describe("values that are not as they should be", () => {
  it("never show a negative, fractional or infinite amount", () => {
    const remaining = (value: number) => render({ ...allowed, remaining: value }, "draft6")["RateLimit-Remaining"];
    expect([-3, -0.5, 49.9, Number.NaN, Infinity, 1e21].map(remaining)).toEqual([
      "0",
      "0",
      "49",
      "0",
      "999999999999999",
      "999999999999999",
    ]);
  });

  it("quote what structured fields want quoted", () => {
    expect(render({ ...allowed, policy: 'a"b\\c', scope: "größe" }, "draft11").RateLimit).toBe(
      '"a\\"b\\\\c/gr%C3%B6%C3%9Fe";r=50;t=1',
    );
  });

  it("let no text start another header field or leave printable ASCII", () => {
    const hostile = fc.oneof(
      fc.array(fc.integer({ min: 0, max: 0xffff })).map((codes) => String.fromCharCode(...codes)),
      fc.constantFrom("a\r\nSet-Cookie: x=1", "a\nb", "\ud800", "\0", "x".repeat(500), "é".repeat(500)),
    );
    fc.assert(
      fc.property(hostile, hostile, hostile, (policy, scope, degraded) => {
        // A store in plain JavaScript may give any reason.
        const reason = degraded as Decision["degraded"];
        const decision: Decision = { ...allowed, state: "warning", policy, scope, degraded: reason };
        for (const generation of headerGenerations) {
          for (const value of Object.values(render(decision, generation))) {
            expect(value).toMatch(/^[\x20-\x7e]{0,400}$/);
          }
        }
        expect(render(decision, "draft11").RateLimit).toMatch(/^"([^"\\]|\\["\\])*";r=50;t=1$/);
      }),
    );
  });
});

describe("cheaper headers", () => {
  it("are in lower case if asked for, and say the same", () => {
    for (const decision of [allowed, denied, withoutLimit]) {
      const proper = renderHeaders(decision, { generations: headerGenerations });
      const lower = renderHeaders(decision, { generations: headerGenerations, lowerCase: true });
      expect(lower).toEqual(
        Object.fromEntries(Object.entries(proper).map(([name, value]) => [name.toLowerCase(), value])),
      );
    }
  });

  it("are brief if asked for: an answer that passes names its limit once", () => {
    const names = (decision: Decision, generations?: readonly HeaderGeneration[]): string[] =>
      Object.keys(renderHeaders(decision, { brief: true, generations }));
    expect(names(allowed)).not.toContain("X-RateLimit-Policy");
    expect(names(allowed)).not.toContain("X-RateLimit-Scope");
    expect(names(allowed)).toContain("RateLimit-Policy");
    expect(names(denied)).toEqual(
      expect.arrayContaining(["X-RateLimit-Policy", "X-RateLimit-Scope", "RateLimit-Policy"]),
    );
    expect(names(allowed, ["legacy"])).toEqual(expect.arrayContaining(["X-RateLimit-Policy", "X-RateLimit-Scope"]));
    expect(Object.keys(renderHeaders(allowed))).toEqual(
      expect.arrayContaining(["X-RateLimit-Policy", "X-RateLimit-Scope"]),
    );
  });

  it("are remembered for their window, and still differ by policy, scope and limit", () => {
    const other: Decision = {
      ...allowed,
      policy: "api.write",
      scope: "user",
      limit: 7,
      remaining: 3,
      limitRemaining: 3,
    };
    const both = [allowed, other, allowed].map((decision) => renderHeaders(decision));
    expect(both[1]).toMatchObject({
      "X-RateLimit-Policy": "api.write",
      "X-RateLimit-Scope": "user",
      "X-RateLimit-Limit": "7",
      RateLimit: expect.stringMatching(/^"api\.write\/user";r=3/),
    });
    expect(both[2]).toEqual(both[0]);
    expect(both[0]).toMatchObject({ "X-RateLimit-Policy": "api.read", "X-RateLimit-Scope": "tenant" });
  });
});
