import { type CheckRequest, type Decision, type ErrorCode, SluiceError } from "sluice";
import { describe, expect, it } from "vitest";
import type { Outcome } from "../batch.ts";
import type { LeaseQuestion, LeaseReply } from "../exchange.ts";
import { ManualTime } from "../testing/manual-time.ts";
import { allowed } from "../testing/scripted-exchange.ts";
import { type LeaseOptions, RemoteLeases } from "./remote-leases.ts";

const standing: Decision = {
  ...allowed,
  policy: "api",
  version: 3,
  scope: "user",
  limit: 1_000,
  remaining: 400,
  used: 600,
  resetAfterMs: 9_000,
  resetAtMs: 1_700_000_009_000,
  preview: true,
};

const reply: LeaseReply = {
  granted: 100,
  epoch: 10,
  forgotten: 0,
  leaseMs: 5_000,
  staleMs: 60_000,
  cost: 1,
  decision: standing,
};

/** Leases from a server that the test plays, on time that the test moves. */
function setUp(options: LeaseOptions = {}) {
  const time = new ManualTime();
  const asked: { readonly question: LeaseQuestion; readonly settle: (outcome: Outcome) => void }[] = [];
  const leases = new RemoteLeases({
    ...options,
    ask: (question, settle) => asked.push({ question, settle }),
    time: { clock: time.clock, schedule: time.schedule, scheduleIdly: time.schedule, soon: () => undefined },
  });
  const check = (more: CheckRequest = {}): Decision | undefined =>
    leases.decide({ dimensions: { user: "ada" }, ...more });
  /** How many of these checks were decided locally. */
  const checks = (count: number, more: CheckRequest = {}): number => {
    let decided = 0;
    for (let i = 0; i < count; i++) if (check(more) !== undefined) decided += 1;
    return decided;
  };
  const answer = (more: Partial<LeaseReply> = {}): LeaseQuestion =>
    settle({ kind: "answer", value: { ...reply, ...more } });
  const settle = (outcome: Outcome): LeaseQuestion => {
    const { question, settle: end } = asked.shift()!;
    end(outcome);
    return question;
  };
  const refuse = (code: ErrorCode): LeaseQuestion => settle({ kind: "refused", error: new SluiceError(code, code) });
  const fail = (mayBeDone: boolean): LeaseQuestion =>
    settle({ kind: "unanswered", reason: "storage_unavailable", mayBeDone });
  /** Holds a lease of 100 units. */
  const leased = (more: Partial<LeaseReply> = {}): void => {
    checks(50);
    answer(more);
  };
  return { leases, time, asked, check, checks, answer, refuse, fail, leased };
}

describe("a subject", () => {
  it("is leased starting at 50 checks a second; earlier checks go to servers", async () => {
    const { checks, asked, time, leases } = setUp();
    expect(checks(49)).toBe(0);
    await time.advance(1_000);
    expect(checks(49)).toBe(0);
    expect(asked).toEqual([]);
    expect(checks(1)).toBe(0);
    expect(asked.map(({ question }) => question)).toEqual([
      {
        kind: "lease",
        request: { domain: undefined, dimensions: { user: "ada" }, policies: undefined },
        want: 201,
        settled: undefined,
      },
    ]);
    expect(leases.stats).toMatchObject({ held: 1, calls: 1, decided: 0 });
  });

  it("covers all checks with the same counter: domain, dimensions and policies", () => {
    const { checks, asked, check } = setUp({ perSecond: 3 });
    const others: readonly CheckRequest[] = [
      { dimensions: { user: "ad", a: "" } },
      { dimensions: { user: "ada", a: "" } },
      { domain: "x" },
      { policies: ["x"] },
      { policies: ["x", "y"] },
    ];
    for (const other of others) check(other);
    checks(2);
    for (const other of others) check(other);
    expect(asked).toEqual([]);
    for (const other of others) check(other);
    expect(asked.map(({ question: { request } }) => request)).toMatchObject(others);
  });

  it("is fixed at the check, whatever happens to the caller's object", () => {
    const { leases, asked, answer, checks } = setUp({ perSecond: 2 });
    const dimensions: Record<string, string> = { user: "ada" };
    for (let i = 0; i < 2; i++) leases.decide({ dimensions });
    dimensions.user = "bob";
    answer();
    checks(100);
    expect(asked[0]!.question.request.dimensions).toEqual({ user: "ada" });
  });

  it("is left to servers if it is too long to be counted, or too many are", () => {
    const { checks, check, asked } = setUp({ perSecond: 2 });
    checks(5, { dimensions: { user: "x".repeat(1_100) } });
    for (let i = 0; i < 4_096; i++) check({ dimensions: { user: `u${i}` } });
    checks(5, { dimensions: { user: "late" } });
    expect(asked).toEqual([]);
    check({ dimensions: { user: "u7" } });
    expect(asked).toHaveLength(1);
  });

  it("is left to servers if the maximum number is leased", () => {
    const { checks, asked } = setUp({ perSecond: 1, max: 2 });
    for (const user of ["a", "b", "c"]) checks(1, { dimensions: { user } });
    expect(asked).toHaveLength(2);
  });
});

describe("units in hand", () => {
  it("decide at once, with the numbers of the grant", async () => {
    const { leased, check, time } = setUp();
    leased();
    await time.advance(2_000);
    expect(check({ cost: 10 })).toEqual({
      ...standing,
      cost: 10,
      remaining: 490,
      limitRemaining: 490,
      used: 510,
      resetAfterMs: 7_000,
      preview: false,
    });
  });

  it("decide that many checks, and no more", () => {
    const { leased, checks, leases } = setUp();
    leased();
    expect(checks(150)).toBe(100);
    expect(leases.stats).toMatchObject({ decided: 100, units: 0, granted: 100 });
  });

  it("are spent by the cost of a check: its own, else its policy's", () => {
    const { leased, check, leases } = setUp();
    leased({ cost: 7 });
    expect(check()).toMatchObject({ cost: 7, allowed: true });
    expect(check({ cost: 90 })).toMatchObject({ cost: 90 });
    expect(check({ cost: 4 })).toBeUndefined();
    expect(check({ cost: 3 })).toMatchObject({ cost: 3 });
    expect(leases.stats.units).toBe(0);
  });

  it.each([{ id: "i" }, { preview: true }, { details: true }, { receipt: true }])(
    "are not for checks that need more: %j",
    (more) => {
      const { leased, check, leases } = setUp();
      leased();
      expect(check(more)).toBeUndefined();
      expect(leases.stats.units).toBe(100);
    },
  );

  it("are no longer reported once they may not be spent", async () => {
    const { leased, check, checks, fail, answer, time } = setUp();
    leased({ staleMs: 0 });
    checks(80);
    fail(true);
    await time.advance(1_000);
    check();
    answer();
    expect(check()).toMatchObject({ remaining: 400 + 100 + 18 });
    await time.advance(4_000);
    expect(check()).toMatchObject({ remaining: 400 + 99 });
  });

  it("never report a subject as blocked", () => {
    const { leased, check } = setUp();
    leased({ decision: { ...standing, allowed: false, reason: "over_limit", state: "throttled", retryAfterMs: 5 } });
    expect(check()).toMatchObject({
      allowed: true,
      reason: "within_limits",
      state: "warning",
      retryAfterMs: undefined,
    });
  });
});

describe("more", () => {
  it("is requested before the last fifth is gone, once, with what was spent and is kept", async () => {
    const { leased, checks, asked, answer, time } = setUp();
    leased();
    await time.advance(100);
    checks(79);
    expect(asked).toEqual([]);
    checks(10);
    expect(asked).toHaveLength(1);
    const { settled } = answer({ epoch: 20 });
    expect(settled).toEqual({ epoch: 10, spent: 80, kept: 20, returned: 0 });
    await time.advance(100);
    expect(checks(100)).toBe(100);
    // Spent while the call was in flight, and since: both of the new epoch.
    expect(asked[0]!.question.settled).toEqual({ epoch: 20, spent: 98, kept: 22, returned: 0 });
  });

  it("is never more than servers accept", async () => {
    const { leased, checks, asked, time } = setUp();
    leased({ granted: 900_000 });
    await time.advance(100);
    checks(9, { cost: 90_000 });
    expect(asked[0]!.question.want).toBe(1_000_000);
  });

  it("is requested when the lease's time is over, even if much is left", async () => {
    const { leased, checks, asked, time } = setUp();
    leased({ granted: 200 });
    await time.advance(4_999);
    checks(70);
    expect(asked).toEqual([]);
    await time.advance(1);
    checks(1);
    expect(asked[0]!.question).toMatchObject({ settled: { epoch: 10, spent: 70, kept: 130, returned: 0 } });
  });

  it("is left alone for a while if grants are too small for their calls", async () => {
    const { leased, checks, asked, answer, time } = setUp();
    leased({ granted: 5 });
    expect(checks(50)).toBe(5);
    await time.advance(249);
    checks(1);
    expect(asked).toEqual([]);
    await time.advance(1);
    checks(1);
    expect(asked).toHaveLength(1);
    answer({ granted: 5 });
    expect(checks(30)).toBe(5);
    await time.advance(499);
    checks(1);
    expect(asked).toEqual([]);
    await time.advance(1);
    checks(1);
    expect(asked).toHaveLength(1);
  });
});

describe("a subject that never gets a grant", () => {
  it("is left to servers for 30 s, after some attempts", async () => {
    const { checks, asked, answer, time, leases } = setUp();
    let calls = 0;
    for (let tenths = 0; tenths < 200; tenths++) {
      checks(60);
      while (asked.length > 0) {
        answer({ granted: 0 });
        calls += 1;
      }
      await time.advance(100);
    }
    expect([calls, leases.stats.held]).toEqual([6, 0]);
    await time.advance(30_000);
    checks(60);
    expect(asked).toHaveLength(1);
  });
});

describe("a lease that no server answers for", () => {
  it("is spent until its time and the stale budget are over, counted from before it was asked for", async () => {
    const { checks, time, answer, fail, asked } = setUp();
    checks(50);
    await time.advance(1_000);
    answer({ granted: 5_000 });
    let failed = 0;
    for (let second = 1; second < 64; second++) {
      expect(checks(20)).toBe(20);
      await time.advance(1_000);
      while (asked.length > 0) fail(failed++ % 2 === 0);
    }
    expect(failed).toBeGreaterThan(20);
    await time.advance(999);
    expect(checks(1)).toBe(1);
    await time.advance(1);
    expect(checks(1)).toBe(0);
  });

  it("ends sooner if this client says so", async () => {
    const { leased, checks, time, fail } = setUp({ staleMs: 2_000 });
    leased();
    await time.advance(5_000);
    fail(false);
    await time.advance(1_999);
    expect(checks(1)).toBe(1);
    await time.advance(1);
    expect(checks(1)).toBe(0);
  });

  it("is given back only once a server is available", async () => {
    const { leased, checks, time, fail, answer } = setUp();
    leased();
    await time.advance(5_000);
    expect(fail(false)).toMatchObject({ want: 0, settled: { returned: 100 } });
    expect(checks(1)).toBe(1);
    await time.advance(6_000);
    expect(answer({ granted: 0 })).toMatchObject({ want: 0, settled: { epoch: 10, spent: 1, returned: 99 } });
  });

  it("is never reported again if the call may have been carried out", async () => {
    const { leased, checks, asked, fail, time, answer } = setUp();
    leased();
    checks(80);
    expect(fail(true).settled).toMatchObject({ spent: 80, kept: 20 });
    await time.advance(1_000);
    expect(checks(30)).toBe(20);
    expect(answer({ epoch: 30 }).settled).toBeUndefined();
    checks(80);
    expect(asked[0]!.question.settled).toEqual({ epoch: 30, spent: 80, kept: 20, returned: 0 });
  });

  it("is reported by the next call if the last one certainly was not carried out", async () => {
    const { leased, checks, fail, time, asked } = setUp();
    leased();
    checks(80);
    fail(false);
    await time.advance(1_000);
    checks(1);
    expect(asked[0]!.question.settled).toEqual({ epoch: 10, spent: 81, kept: 19, returned: 0 });
  });
});

describe("a lease that is not used", () => {
  it("is given back when its time is over, and then nothing runs", async () => {
    const { leased, asked, time, answer, leases, checks } = setUp();
    leased();
    checks(30);
    await time.advance(6_000);
    expect(asked.map(({ question }) => question)).toMatchObject([
      { want: 0, settled: { epoch: 10, spent: 30, kept: 0, returned: 70 } },
    ]);
    // Until that is done servers decide.
    expect(checks(60)).toBe(0);
    expect(asked).toHaveLength(1);
    answer({ granted: 0 });
    expect(leases.stats).toMatchObject({ held: 0, units: 0, returned: 70, lost: 0 });
    await time.advance(2_000);
    expect(time.timers).toBe(0);
    checks(50);
    expect(asked).toHaveLength(1);
  });

  it("is renewed instead if it is in use", async () => {
    const { leased, checks, asked, time, answer } = setUp();
    leased({ granted: 1_000 });
    for (let i = 0; i < 5; i++) {
      checks(50);
      await time.advance(1_000);
    }
    expect(answer().want).toBeGreaterThan(0);
    await time.advance(5_500);
    expect(asked.map(({ question: { want } }) => want)).toEqual([0]);
  });
});

describe("a server that grants no leases", () => {
  it("gets the units in hand back, and is not asked for this subject for 30 s", async () => {
    const { leased, checks, asked, refuse, answer, time, leases } = setUp();
    leased();
    checks(80);
    refuse("not_leasable");
    expect(checks(10)).toBe(0);
    expect(answer({ granted: 0 })).toMatchObject({ want: 0, settled: { epoch: 10, spent: 80, kept: 0, returned: 20 } });
    expect(leases.stats).toMatchObject({ held: 0, returned: 20, refused: 1 });
    checks(200);
    expect(asked).toEqual([]);
    checks(50, { dimensions: { user: "bob" } });
    expect(asked).toHaveLength(1);
    await time.advance(30_000);
    checks(50);
    expect(asked).toHaveLength(2);
  });

  it("nor accepts any back is not asked over and over", () => {
    const { leased, checks, asked, refuse, leases } = setUp();
    leased();
    checks(80);
    refuse("not_leasable");
    refuse("not_leasable");
    expect(asked).toEqual([]);
    expect(leases.stats).toMatchObject({ held: 0, returned: 0, lost: 20 });
  });

  it("is remembered for a bounded number of subjects", () => {
    const { checks, asked, refuse } = setUp({ perSecond: 1 });
    for (let i = 0; i <= 1_000; i++) {
      checks(1, { dimensions: { user: `u${i}` } });
      refuse("not_leasable");
    }
    checks(1, { dimensions: { user: "u1" } });
    expect(asked).toEqual([]);
    checks(1, { dimensions: { user: "u0" } });
    expect(asked).toHaveLength(1);
  });

  it.each(["not_found", "permission_denied", "unauthenticated"] as const)(
    "to any client (%s) is not asked for 30 s at all",
    async (code) => {
      const { checks, asked, refuse, time, leases } = setUp();
      checks(50);
      refuse(code);
      checks(50, { dimensions: { user: "bob" } });
      expect(asked).toEqual([]);
      expect(leases.stats.held).toBe(0);
      await time.advance(30_000);
      checks(50, { dimensions: { user: "bob" } });
      expect(asked).toHaveLength(1);
    },
  );
});

describe("close", () => {
  it("gives everything back, and ends when that is done", async () => {
    const { leased, leases, checks, answer, time, asked } = setUp();
    leased();
    checks(10);
    const closed = leases.close(1_000);
    expect(checks(1)).toBe(0);
    expect(answer({ granted: 0 })).toMatchObject({ want: 0, settled: { spent: 10, kept: 0, returned: 90 } });
    await closed;
    checks(200);
    expect([asked.length, time.timers, leases.stats.held]).toEqual([0, 0, 0]);
  });

  it("gives back the grant of a call in flight", async () => {
    const { leases, checks, answer } = setUp();
    checks(50);
    const closed = leases.close(1_000);
    answer();
    expect(answer({ granted: 0 }).settled).toEqual({ epoch: 10, spent: 0, kept: 0, returned: 100 });
    await closed;
    expect(leases.stats).toMatchObject({ held: 0, returned: 100 });
  });

  it("does not wait if no server is available", async () => {
    const { leased, leases, fail, time } = setUp();
    leased();
    const closed = leases.close(1_000);
    fail(false);
    await closed;
    expect([time.timers, leases.stats.held]).toEqual([0, 0]);
  });

  it("waits no longer than it may", async () => {
    const { leased, leases, time } = setUp();
    leased();
    let over = false;
    const closed = leases.close(1_000).then(() => {
      over = true;
    });
    await time.advance(999);
    expect(over).toBe(false);
    await time.advance(1);
    await closed;
  });

  it("is done at once if nothing is held", async () => {
    const { leases, time } = setUp();
    await leases.close(1_000);
    expect(time.timers).toBe(0);
  });
});
