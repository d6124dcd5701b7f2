import { describe, expect, it } from "vitest";
import { ManualClock } from "./clock.ts";
import { createLimiter } from "./create-limiter.ts";
import { renderHeaders } from "./decision/render-headers.ts";
import { renderProblemBody } from "./decision/render-problem.ts";
import { renderExplanation } from "./explain.ts";
import type { Limiter } from "./limiter.ts";
import { parsePolicies } from "./policy/parse-policies.ts";
import type { BlockedSubject, DisabledPolicy, PolicySet } from "./policy/policy.ts";
import type { CheckRequest } from "./request/check-request.ts";
import { failingCounters } from "./testing/failing-counters.ts";

const clock = new ManualClock(1_000_000);
const untilMs = (): number => clock.epochMs() + 60_000;
const policies = parsePolicies({
  policies: [
    { id: "api", match: { endpoint: "/api" }, limits: [{ by: ["user"], windows: ["1/h"] }], on_failure: "closed" },
    {
      id: "strict",
      match: { endpoint: "/strict" },
      replaces: "api",
      limits: [
        { by: ["user"], windows: ["1/h"] },
        { by: ["tenant"], windows: ["3/h"] },
      ],
      on_failure: "open",
    },
  ],
  default: { limits: [{ by: ["user"], windows: ["2/h"] }], on_failure: "open" },
});

function open(more: Pick<PolicySet, "disabled" | "blocks">): Limiter {
  return createLimiter({ clock, policies: { ...policies, ...more } });
}

const disabled = (mode: DisabledPolicy["mode"], policy = "api"): Pick<PolicySet, "disabled"> => ({
  disabled: [{ policy, mode, untilMs: untilMs(), reason: "wrong since noon" }],
});
const blocks = (more: Partial<BlockedSubject> = {}): Pick<PolicySet, "blocks"> => ({
  blocks: [{ dimension: "user", value: "u1", untilMs: untilMs(), reason: "scraping", ...more }],
});
const api = { dimensions: { endpoint: "/api", user: "u1", tenant: "acme" } };
const strict = { dimensions: { endpoint: "/strict", user: "u1", tenant: "acme" } };
const other = { dimensions: { endpoint: "/other", user: "u1" } };

/** How many of these pass at once. */
function pass(limiter: Limiter, request: Parameters<Limiter["checkSync"]>[0], times = 6): number {
  return Array.from({ length: times }, () => limiter.checkSync(request)).filter(({ allowed }) => allowed).length;
}

describe("a disabled policy", () => {
  it("limits and counts nothing until it ends, to the millisecond, and its requests do not fall to the default", () => {
    const limiter = open(disabled("allow"));
    expect(pass(limiter, api)).toBe(6);
    expect(limiter.checkSync(api)).toMatchObject({ reason: "unlimited", policy: "api" });
    expect(pass(limiter, other)).toBe(2);
    clock.advance(59_999);
    expect(pass(limiter, api)).toBe(6);
    clock.advance(1);
    expect(pass(limiter, api)).toBe(1);
  });

  it("may be one with several limits, and still replaces what it replaces", () => {
    const limiter = open(disabled("allow", "strict"));
    expect([pass(limiter, strict), pass(limiter, { ...strict, policies: ["strict", "api"] })]).toEqual([6, 6]);
    expect(pass(open({}), strict)).toBe(1);
  });

  it("may be the default policy, and then others limit as usual", () => {
    const limiter = open(disabled("allow", "default"));
    expect([pass(limiter, other), pass(limiter, api)]).toEqual([6, 1]);
  });

  it("in shadow goes on counting and reports what it would deny", () => {
    const limiter = open(disabled("shadow"));
    expect(pass(limiter, api)).toBe(6);
    expect(limiter.checkSync(api)).toMatchObject({
      allowed: true,
      shadow: [{ policy: "api", reason: "over_limit" }],
    });
    clock.advance(60_000);
    expect(pass(limiter, api)).toBe(0);
  });

  it("is named in explanations, with its end and reason", async () => {
    const text = renderExplanation(await open(disabled("shadow")).explain(api));
    expect(text).toMatch(/api: .*disabled until 1970.*decides and counts, and never denies: wrong since noon/);
    const allowing = renderExplanation(await open(disabled("allow")).explain(api));
    expect(allowing).toMatch(/limits and counts nothing: wrong since noon/);
    expect(allowing).not.toContain("is skipped");
  });
});

describe("a blocked subject", () => {
  it("reads in a refusal that an operator keeps it out", () => {
    const decision = open(blocks()).checkSync(api);
    expect(renderProblemBody(decision).detail).toMatch(
      /^An operator keeps this caller out for a while. Please come back in /,
    );
    expect(renderHeaders(decision)["Retry-After"]).toMatch(/^6[0-9]$/);
  });

  it("is denied whatever applies, with the wait, until the block ends", () => {
    const limiter = open(blocks());
    for (const request of [api, strict, other, { ...api, policies: ["api"] }])
      expect(limiter.checkSync(request)).toMatchObject({
        allowed: false,
        reason: "blocked",
        retryAfterMs: 60_000,
        resetAtMs: untilMs(),
      });
    expect(limiter.checkSync({ dimensions: { ...api.dimensions, user: "u2" } }).allowed).toBe(true);
    clock.advance(59_999);
    expect(limiter.checkSync(api)).toMatchObject({ reason: "blocked", retryAfterMs: 1, policy: "api" });
    clock.advance(1);
    expect(limiter.checkSync(api).allowed).toBe(true);
  });

  it("is denied even if no policy applies, and takes nothing from its counters", () => {
    const none = parsePolicies({ policies: [], default: "none" });
    const limiter = createLimiter({ clock, policies: { ...none, ...blocks() } });
    expect(limiter.checkSync(other)).toMatchObject({ allowed: false, reason: "blocked", policy: undefined });
    const counted = open(blocks());
    pass(counted, api);
    clock.advance(60_000);
    expect(pass(counted, api)).toBe(1);
  });

  it("may be denied by some policies alone, but not by one in shadow mode or one that is disabled", () => {
    const limiter = open(blocks({ policies: ["api"] }));
    expect([limiter.checkSync(api).reason, limiter.checkSync(other).reason]).toEqual(["blocked", "within_limits"]);
    const shadowed = open({ ...blocks({ policies: ["api"] }), ...disabled("shadow") });
    expect(shadowed.checkSync(api)).toMatchObject({ allowed: true, shadow: [{ policy: "api", reason: "blocked" }] });
    expect(open({ ...blocks({ policies: ["api"] }), ...disabled("allow") }).checkSync(api).allowed).toBe(true);
    expect(open({ ...blocks(), ...disabled("allow") }).checkSync(api).allowed).toBe(false);
  });

  it("is found by the form in which its value is counted, and no unreadable value is refused for it", () => {
    const limiter = open({
      blocks: [{ dimension: "ip", value: "2001:db8::1", untilMs: untilMs() }],
    });
    expect(limiter.checkSync({ dimensions: { ip: "2001:db8:0:0::2", user: "u1" } }).reason).toBe("blocked");
    expect(limiter.checkSync({ dimensions: { ip: "nonsense", user: "u1" } }).allowed).toBe(true);
  });

  it("is named in explanations, with its end and reason", async () => {
    const text = renderExplanation(await open(blocks()).explain(api));
    expect(text).toMatch(/api: .*user u1 is blocked until 1970-.*: scraping/);
    expect(text).toMatch(/DENIED by api: blocked; passes in 60000 ms/);
  });

  it("is denied by a check of several requests together", async () => {
    const [first, second] = await open(blocks()).checkTogether([api, { dimensions: { user: "u2" } }]);
    expect([first?.reason, second?.allowed]).toEqual(["blocked", true]);
  });

  it("stays out while the counters are unavailable, alone or together with others, even in a preview", async () => {
    const limiter = createLimiter({ clock, policies: { ...policies, ...blocks() }, counters: failingCounters() });
    const good = { dimensions: { ...other.dimensions, user: "u2" } };
    const degraded = { allowed: true, reason: "degraded" };
    const out = { allowed: false, reason: "blocked", retryAfterMs: 60_000 };
    expect(await limiter.check(other)).toMatchObject(out);
    for (const options of [{}, { preview: true }]) {
      expect(await limiter.checkTogether([other], options)).toMatchObject([out]);
      expect(await limiter.checkTogether([other, good], options)).toMatchObject([out, degraded]);
    }
  });
});

describe("limits that a request brings along", () => {
  const window = { limit: 1, per: { kind: "ms", ms: 3_600_000 }, burst: 1 } as const;
  const brought: CheckRequest = { ...api, limits: [{ name: "api", by: ["user"], window }] };

  it.each([() => disabled("allow"), () => disabled("shadow"), () => blocks({ policies: ["api"] })])(
    "ignore what is decided about a policy of the same name (%#)",
    (exceptions) => {
      // With details, the check takes the general path.
      for (const request of [brought, { ...brought, details: true }]) {
        const limiter = open(exceptions());
        expect(limiter.checkSync(request)).toMatchObject({ allowed: true, reason: "within_limits" });
        expect(limiter.checkSync(request)).toMatchObject({ allowed: false, reason: "over_limit" });
      }
    },
  );

  it("do not let a subject in that is blocked everywhere", () => {
    expect(open(blocks()).checkSync(brought)).toMatchObject({ allowed: false, reason: "blocked" });
  });
});
