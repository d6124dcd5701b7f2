import { describe, expect, it } from "vitest";
import type { Window } from "../policy/policy.ts";
import type { Decision, LimitDecision } from "./decision.ts";
import { nameLimits } from "./render-headers.ts";
import { renderProblemBody } from "./render-problem.ts";

const perMinute: Window = { limit: 100, per: { kind: "ms", ms: 60_000 }, burst: 100 };

const denied: Decision = {
  allowed: false,
  reason: "over_limit",
  cost: 5,
  policy: "api.read",
  version: 3,
  scope: "tenant",
  window: perMinute,
  limit: 100,
  remaining: 3,
  limitRemaining: 3,
  used: 97,
  moreAfterMs: undefined,
  retryAfterMs: 1200,
  resetAfterMs: 58_200,
  resetAtMs: 1_700_000_058_200,
  queue: undefined,
  state: "throttled",
  denyCount: 5,
  replayed: false,
  preview: false,
  degraded: undefined,
  shadow: [],
  limits: undefined,
  receipt: undefined,
};

const limitDecision = (fields: Partial<LimitDecision>): LimitDecision => ({
  policy: "api.read",
  version: 3,
  scope: "tenant",
  subject: "acme-secret",
  algorithm: "gcra",
  allowed: false,
  reason: "over_limit",
  window: perMinute,
  cost: 5,
  limit: 100,
  remaining: 3,
  used: 97,
  retryAfterMs: 1200,
  resetAfterMs: 58_200,
  queue: undefined,
  shadow: false,
  ...fields,
});

describe("renderProblemBody", () => {
  it("says which limit, how much, and when to come back", () => {
    expect(renderProblemBody(denied, "/v1/orders")).toEqual({
      type: "https://iana.org/assignments/http-problem-types#quota-exceeded",
      title: "Too Many Requests",
      status: 429,
      detail:
        "Policy api.read, limit tenant, allows 100 per minute. This request costs 5, and 3 is left. Please come back in 2 seconds.",
      instance: "/v1/orders",
      reason: "over_limit",
      cost: 5,
      policy: "api.read",
      scope: "tenant",
      limit: 100,
      remaining: 3,
      retry_after_ms: 1200,
      reset_after_ms: 58_200,
      "violated-policies": ["api.read/tenant"],
    });
  });

  it("says that a cost that never fits will not fit later", () => {
    const window: Window = { limit: 100, per: { kind: "ms", ms: 1000 }, burst: 200 };
    const body = renderProblemBody({
      ...denied,
      reason: "never_fits",
      cost: 500,
      limit: 200,
      window,
      retryAfterMs: undefined,
    });
    expect(body.detail).toBe(
      "Policy api.read, limit tenant, allows 100 per second, at most 200 at once. This request costs 500, and more than 200 never fits at once. Waiting does not help.",
    );
    expect(body).toMatchObject({ status: 429, reason: "never_fits", "violated-policies": ["api.read/tenant"] });
    expect(body).not.toHaveProperty("retry_after_ms");
  });

  it("does not claim that a used-up one-off quota comes back", () => {
    const window: Window = { limit: 100, per: { kind: "never" }, burst: 100 };
    const used: Decision = { ...denied, window, remaining: 0, retryAfterMs: undefined, resetAfterMs: Infinity };
    const body = renderProblemBody(used);
    expect(body.detail).toBe(
      "Policy api.read, limit tenant, allows 100 in all. This request costs 5, and 0 is left. Waiting does not help.",
    );
    expect(body).not.toHaveProperty("reset_after_ms");
  });

  it("reports a block as such", () => {
    const body = renderProblemBody({ ...denied, reason: "blocked", retryAfterMs: 300_000 });
    expect(body.detail).toContain("blocked for a while");
    expect(body.detail).toContain("Please come back in 5 minutes.");
    expect(body.status).toBe(429);
  });

  it.each(["deny_list", "missing_dimension"] as const)("does not call %s an exceeded quota", (reason) => {
    const body = renderProblemBody({ ...denied, reason, retryAfterMs: 1200 });
    expect(body).toMatchObject({ type: "about:blank", status: 429, reason });
    expect(body).not.toHaveProperty("violated-policies");
    expect(body).not.toHaveProperty("retry_after_ms");
  });

  it("answers an outage with 503, never with 429", () => {
    const closed: Decision = { ...denied, reason: "degraded", degraded: "storage_unavailable", retryAfterMs: 60_000 };
    const body = renderProblemBody(closed);
    expect(body).toMatchObject({
      type: "about:blank",
      title: "Service Unavailable",
      status: 503,
      degraded: "storage_unavailable",
      retry_after_ms: 60_000,
    });
    expect(body.detail).toContain("cannot reach its counters");
    expect(body).not.toHaveProperty("violated-policies");
  });

  it("answers 429 for a real denial by the local share during an outage", () => {
    const local = renderProblemBody({ ...denied, degraded: "storage_unavailable" });
    expect(local).toMatchObject({ status: 429, degraded: "storage_unavailable" });
    expect(local.detail).toMatch(
      /come back in .* The limiter cannot reach its counters, so this node counts on its own/,
    );
  });

  it("distinguishes kinds of outages", () => {
    const renderDetail = (degraded: Decision["degraded"]): string =>
      renderProblemBody({ ...denied, reason: "degraded", degraded }).detail;
    expect(renderDetail("storage_timeout")).toContain("counters do not answer in time, and without them");
    expect(renderDetail("storage_overloaded")).toContain("counters have too much to do, and without them");
  });

  it("lists every violated limit by its name in the header fields, and none that only shadows", () => {
    const limits = [
      limitDecision({ scope: "ip", allowed: true, reason: "within_limits" }),
      limitDecision({ scope: "user", remaining: 0 }),
      limitDecision({}),
      limitDecision({ algorithm: "fixed_window", remaining: 1 }),
      limitDecision({ policy: "beta", shadow: true }),
    ];
    const decision = { ...denied, limits };
    const violated = renderProblemBody(decision)["violated-policies"];
    expect(violated).toEqual(["api.read/user", "api.read/tenant", "api.read/tenant#2"]);
    expect(nameLimits(decision).map(({ name }) => name)).toEqual(expect.arrayContaining([...violated!]));
  });

  it("never reveals the subject's own values", () => {
    const limits = [limitDecision({})];
    expect(JSON.stringify(renderProblemBody({ ...denied, limits, shadow: limits }))).not.toContain("acme-secret");
  });

  it.each([
    [500, "500 ms"],
    [1000, "1 second"],
    [1001, "2 seconds"],
    [2000, "2 seconds"],
    [90_000, "90 seconds"],
    [120_001, "3 minutes"],
    [3_570_000, "1 hour"],
    [3_600_000, "1 hour"],
    [7_200_000, "2 hours"],
    [172_800_000, "2 days"],
  ])("writes %d ms as %s, never too early", (retryAfterMs, words) => {
    expect(renderProblemBody({ ...denied, retryAfterMs }).detail).toContain(`Please come back in ${words}.`);
  });

  it.each<[Window["per"], string]>([
    [{ kind: "ms", ms: 100 }, "100 per 100 ms."],
    [{ kind: "ms", ms: 3_600_000 }, "100 per hour."],
    [{ kind: "ms", ms: 10_000 }, "100 per 10 seconds."],
    [{ kind: "ms", ms: 150_000 }, "100 per 150 seconds."],
    [{ kind: "ms", ms: 1500 }, "100 per 1500 ms."],
    [{ kind: "calendar", unit: "month", timeZone: "UTC" }, "100 per calendar month."],
  ])("writes the window %j as %s", (per, words) => {
    expect(renderProblemBody({ ...denied, window: { ...perMinute, per } }).detail).toContain(words);
  });

  it("never shows a negative or fractional remaining", () => {
    expect(renderProblemBody({ ...denied, remaining: -4 })).toMatchObject({
      remaining: 0,
      detail: expect.stringContaining("0 is left"),
    });
    expect(renderProblemBody({ ...denied, remaining: 2.7 }).remaining).toBe(2);
  });

  it("refuses to make a problem of an allowed decision", () => {
    expect(() => renderProblemBody({ ...denied, allowed: true })).toThrow(/only a denial has one/);
  });

  it("does without the fields that a decision lacks", () => {
    const bare: Decision = {
      ...denied,
      reason: "deny_list",
      policy: undefined,
      scope: undefined,
      window: undefined,
      limit: undefined,
      remaining: undefined,
      resetAfterMs: undefined,
      retryAfterMs: undefined,
    };
    expect(renderProblemBody(bare)).toEqual({
      type: "about:blank",
      title: "Too Many Requests",
      status: 429,
      detail: "A policy does not let this caller in. Waiting does not help.",
      reason: "deny_list",
      cost: 5,
    });
  });
});
