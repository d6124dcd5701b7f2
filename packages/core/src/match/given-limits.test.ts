import { describe, expect, it } from "vitest";
import type { Window } from "../policy/policy.ts";
import type { GivenLimit } from "../request/check-request.ts";
import { openLimiter } from "../testing/open-limiter.ts";

const window = (limit: number, ms: number, burst: number = limit): Window => ({
  limit,
  per: { kind: "ms", ms },
  burst,
});
const given = (more: Partial<GivenLimit> = {}): GivenLimit => ({
  name: "brought",
  by: ["key"],
  window: window(3, 60_000),
  ...more,
});

describe("a limit that a request brings along", () => {
  it("decides instead of policies", () => {
    const { limiter } = openLimiter({ policies: [{ id: "p", limits: [{ by: ["key"], windows: "1/h" }] }] });
    const limits = [given()];
    for (const remaining of [2, 1, 0])
      expect(limiter.checkSync({ limits, dimensions: { key: "k" } })).toMatchObject({
        allowed: true,
        policy: "brought",
        remaining,
      });
    expect(limiter.checkSync({ limits, dimensions: { key: "k" } })).toMatchObject({ allowed: false, limit: 3 });
    expect(limiter.checkSync({ limits, dimensions: { key: "other" } })).toMatchObject({ allowed: true, remaining: 2 });
    expect(limiter.checkSync({ dimensions: { key: "k" } })).toMatchObject({ allowed: true, policy: "p" });
  });

  it("has separate counters, even if a policy has its name", () => {
    const { limiter } = openLimiter({ policies: [{ id: "brought", limits: [{ by: ["key"], windows: "3/m" }] }] });
    limiter.checkSync({ limits: [given()], dimensions: { key: "k" } });
    expect(limiter.checkSync({ dimensions: { key: "k" } })).toMatchObject({ remaining: 2 });
    const both = [{ limits: [given()], dimensions: { key: "k" } }, { dimensions: { key: "k" } }];
    expect(limiter.checkTogether(both)).toMatchObject([{ remaining: 1 }, { remaining: 1 }]);
  });

  it("is not changed by overrides under a policy of its name", () => {
    const { limiter } = openLimiter({
      policies: [{ id: "brought", limits: [{ by: ["key"], windows: "3/m" }] }],
      subjects: [{ key: "k", limits: [{ policy: "brought", windows: "100/m" }] }],
    });
    const request = { limits: [given()], dimensions: { key: "k" } };
    for (const more of [{}, { preview: true }, { id: "i" }, { details: true }])
      expect(limiter.checkSync({ ...request, ...more })).toMatchObject({ limit: 3 });
    expect(limiter.checkSync({ dimensions: { key: "k" } })).toMatchObject({ limit: 100 });
  });

  it("goes on with its counter when its numbers change, whatever the object", () => {
    const { limiter } = openLimiter({ policies: [] });
    const dimensions = { key: "k" };
    limiter.checkSync({ limits: [given({ window: window(4, 60_000) })], dimensions, cost: 2 });
    expect(limiter.checkSync({ limits: [given({ window: window(8, 120_000) })], dimensions })).toMatchObject({
      remaining: 5,
      limit: 8,
    });
  });

  it.each(["fixed_window", "sliding_window", "sliding_log", "leaky_bucket"] as const)("may be a %s", (algorithm) => {
    const { limiter } = openLimiter({ policies: [] });
    const limits = [given({ algorithm })];
    const allowed = Array.from({ length: 5 }, () => limiter.checkSync({ limits, dimensions: { key: "k" } }).allowed);
    expect(allowed).toEqual([true, true, true, false, false]);
  });

  it("that was 0 for a while and is charged meanwhile still begins anew when its window does", async () => {
    const { limiter, clock } = openLimiter({ policies: [] });
    const request = (limit: number) => ({
      limits: [given({ algorithm: "fixed_window", window: window(limit, 60_000) })],
      dimensions: { key: "k" },
    });
    limiter.checkSync({ ...request(3), cost: 3 });
    expect(limiter.checkSync(request(0))).toMatchObject({ allowed: false });
    await limiter.charge(request(0));
    expect(limiter.checkSync(request(3))).toMatchObject({ allowed: false, retryAfterMs: 60_000 });
    clock.advance(60_000);
    expect(limiter.checkSync(request(3))).toMatchObject({ allowed: true, remaining: 2 });
  });

  it("may be one of several, all or nothing", () => {
    const { limiter } = openLimiter({ policies: [] });
    const limits = [given(), given({ name: "all", by: [], window: window(2, 60_000) })];
    const ask = (key: string) => limiter.checkSync({ limits, dimensions: { key } });
    expect([ask("a").allowed, ask("b").allowed, ask("c").allowed]).toEqual([true, true, false]);
    expect(limiter.checkSync({ limits: [limits[0]!], dimensions: { key: "c" }, preview: true })).toMatchObject({
      remaining: 3,
    });
  });

  it("is charged, given back and reset like any other", async () => {
    const { limiter } = openLimiter({ policies: [] });
    const limits = [given()];
    const request = { limits, dimensions: { key: "k" } };
    const { receipt } = await limiter.check({ ...request, receipt: true });
    expect(await limiter.give(receipt!)).toBe(true);
    await limiter.charge({ ...request, cost: 2 });
    expect(await limiter.peek(request)).toMatchObject({ remaining: 1 });
    await limiter.charge({ ...request, cost: -1 });
    expect(await limiter.peek(request)).toMatchObject({ remaining: 2 });
    await limiter.reset(request);
    expect(await limiter.peek(request)).toMatchObject({ remaining: 3 });
  });

  it("cannot be combined with policies asked for by name", () => {
    const { limiter } = openLimiter({ policies: [{ id: "p", limits: [{ by: ["key"], windows: "1/h" }] }] });
    expect(() => limiter.checkSync({ limits: [given()], policies: ["p"] })).toThrow(
      /limits cannot be combined with policies/,
    );
    expect(() => limiter.checkSync({ limits: [] })).toThrow(/limits must be a list of 1 to 16 limits/);
  });

  it("cannot be combined with another of its name, whose counter it would share", () => {
    const { limiter } = openLimiter({ policies: [] });
    const limits = [given(), given({ window: window(100, 3_600_000) })];
    expect(() => limiter.checkSync({ limits, dimensions: { key: "k" } })).toThrow(/each with a different name/);
  });
});
