import { describe, expect, it } from "vitest";
import { ManualClock } from "./clock.ts";
import { createLimiter } from "./create-limiter.ts";
import type { Limiter } from "./limiter.ts";
import { failingCounters } from "./testing/failing-counters.ts";

const policies = {
  policies: [{ id: "p", limits: [{ by: ["user"], windows: ["1/h"] }], on_failure: "closed" }],
  default: "none",
};
const user = { dimensions: { user: "u" } };

function onClock(): { readonly clock: ManualClock; readonly limiter: Limiter } {
  const clock = new ManualClock();
  return { clock, limiter: createLimiter({ policies, clock }) };
}

describe("forcing every decision", () => {
  it("allows everything, and counts nothing", async () => {
    const { clock, limiter } = onClock();
    limiter.force({ mode: "open", untilMs: clock.epochMs() + 60_000 });
    for (let i = 0; i < 5; i++)
      expect(limiter.checkSync(user)).toMatchObject({ allowed: true, reason: "degraded", degraded: "kill_switch" });
    expect(await limiter.check(user)).toMatchObject({ allowed: true, degraded: "kill_switch" });
    expect(await limiter.checkTogether([user, user])).toMatchObject([{ allowed: true }, { allowed: true }]);
    expect((await limiter.explain(user)).decision.degraded).toBe("kill_switch");
    limiter.force(undefined);
    expect(limiter.checkSync(user)).toMatchObject({ allowed: true, degraded: undefined, remaining: 0 });
    expect(limiter.checkSync(user).allowed).toBe(false);
  });

  it("leaves no debt for what passed while it was open, and gives back what was taken before", async () => {
    const { clock, limiter } = onClock();
    const { receipt } = limiter.checkSync({ ...user, receipt: true });
    limiter.force({ mode: "open", untilMs: clock.epochMs() + 60_000 });
    await limiter.charge({ ...user, cost: 100 });
    await limiter.charge(user);
    expect(await limiter.give(receipt!)).toBe(true);
    await expect(limiter.charge({ ...user, cost: 0 })).rejects.toThrow("cost");
    limiter.force(undefined);
    expect(limiter.checkSync(user).allowed).toBe(true);
  });

  it("charges for what passed before it closed", async () => {
    const { clock, limiter } = onClock();
    limiter.force({ mode: "closed", untilMs: clock.epochMs() + 60_000 });
    await limiter.charge(user);
    limiter.force(undefined);
    expect(limiter.checkSync(user).allowed).toBe(false);
  });

  it("denies everything until it ends, even requests that no policy limits", () => {
    const { clock, limiter } = onClock();
    limiter.force({ mode: "closed", untilMs: clock.epochMs() + 60_000 });
    clock.advance(20_000);
    expect(limiter.checkSync({ dimensions: { tenant: "t" } })).toMatchObject({
      allowed: false,
      reason: "degraded",
      degraded: "kill_switch",
      retryAfterMs: 40_000,
      resetAtMs: clock.epochMs() + 40_000,
    });
    expect(limiter.forced).toMatchObject({ mode: "closed" });
  });

  it("expires to the millisecond", () => {
    const { clock, limiter } = onClock();
    limiter.force({ mode: "closed", untilMs: clock.epochMs() + 1_000 });
    clock.advance(999);
    expect(limiter.checkSync(user).allowed).toBe(false);
    clock.advance(1);
    expect(limiter.forced).toBeUndefined();
    expect(limiter.checkSync(user)).toMatchObject({ allowed: true, degraded: undefined });
  });

  it("ends in time although the wall clock steps back, and at once if it leaps past the end", () => {
    const { clock, limiter } = onClock();
    limiter.force({ mode: "closed", untilMs: clock.epochMs() + 1_000 });
    clock.stepWall(-3_600_000);
    clock.advance(1_000);
    expect(limiter.checkSync(user).allowed).toBe(true);
    limiter.force({ mode: "closed", untilMs: clock.epochMs() + 1_000 });
    clock.stepWall(2_000);
    expect(limiter.checkSync({ dimensions: { user: "v" } }).allowed).toBe(true);
  });

  it("has no effect if its end has passed already", () => {
    const { clock, limiter } = onClock();
    limiter.force({ mode: "closed", untilMs: clock.epochMs() });
    expect(limiter.checkSync(user).allowed).toBe(true);
  });

  it("asks no counters, which may be unavailable", async () => {
    const limiter = createLimiter({
      policies,
      counters: failingCounters(() => new Error("the counters are unavailable")),
    });
    expect((await limiter.check(user)).allowed).toBe(false);
    limiter.force({ mode: "open", untilMs: Date.now() + 60_000 });
    expect(await limiter.check(user)).toMatchObject({ allowed: true, degraded: "kill_switch" });
    expect(await limiter.checkTogether([user])).toMatchObject([{ allowed: true, degraded: "kill_switch" }]);
  });

  it("still refuses invalid requests", () => {
    const { clock, limiter } = onClock();
    limiter.force({ mode: "open", untilMs: clock.epochMs() + 1_000 });
    expect(() => limiter.checkSync({ cost: -1 })).toThrow(expect.objectContaining({ code: "invalid_request" }));
  });
});
