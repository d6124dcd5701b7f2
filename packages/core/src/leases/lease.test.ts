import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { LeaseAsk } from "../counters/counter-store.ts";
import { Lease } from "./lease.ts";

const times = { refreshMs: 500, leaseMs: 5000, staleMs: 60_000 };
const holdMs = 65_000;

/** A lease with this many units, granted at 0. */
function holding(units: number, mostUseful = 1000): Lease {
  const lease = new Lease(times, mostUseful, 100, 0);
  lease.ask(0);
  lease.granted({ granted: units, epoch: 80_000 }, 1);
  return lease;
}

describe("a lease", () => {
  it("is sized to last for the refresh interval at the observed rate, and not beyond what is useful", () => {
    expect(new Lease(times, 1000, 100, 0).ask(0).want).toBe(51);
    expect(new Lease(times, 20, 100, 0).ask(0).want).toBe(20);
    expect(new Lease(times, 1000, 0, 0).ask(0).want).toBe(17);
    expect(new Lease(times, 1, 0, 0).ask(0).want).toBe(1);
  });

  it("is spent down to nothing, and then refuses", () => {
    const lease = holding(10);
    for (let i = 0; i < 3; i++) expect(lease.spend(3, 2)).toBe(true);
    expect(lease.spend(2, 2)).toBe(false);
    expect(lease.spend(1, 2)).toBe(true);
    expect(lease.spend(1, 2)).toBe(false);
    expect(lease.tokens).toBe(0);
  });

  it("asks for more when a fifth is left, or when it has ended, and never twice at a time", () => {
    const lease = holding(100);
    lease.spend(79, 2);
    expect(lease.isDue(2)).toBe(false);
    lease.spend(1, 2);
    expect(lease.isDue(2)).toBe(true);
    lease.ask(2);
    expect(lease.isDue(2)).toBe(false);
    expect(lease.isDue(100_000)).toBe(false);
    const ended = holding(10);
    expect(ended.isDue(4999)).toBe(false);
    expect(ended.isDue(5000)).toBe(true);
  });

  it("asks for more when less than one request's cost is left, unless it could never be enough", () => {
    const lease = holding(100);
    expect(lease.spend(60, 2)).toBe(true);
    expect(lease.isDue(2)).toBe(false);
    expect(lease.spend(60, 2)).toBe(false);
    expect(lease.isDue(2)).toBe(true);
    const small = holding(100, 100);
    expect(small.reserve(101, 2)).toBe(-1);
    expect(small.isDue(2)).toBe(false);
  });

  it("reports once what was spent, and what it keeps", () => {
    const lease = holding(10);
    lease.spend(8, 2);
    expect(lease.ask(3).settled).toEqual({ epoch: 80_000, spent: 8, kept: 2, returned: 0 });
    lease.spend(1, 3);
    lease.granted({ granted: 5, epoch: 90_000 }, 4);
    expect(lease.tokens).toBe(6);
    lease.spend(6, 5);
    expect(lease.ask(5).settled).toEqual({ epoch: 90_000, spent: 7, kept: 0, returned: 0 });
  });

  it("drops kept units that the central store does not know, and does not mention those spent of them", () => {
    const lease = holding(10);
    lease.spend(2, 2);
    expect(lease.ask(3).settled).toMatchObject({ spent: 2, kept: 8 });
    lease.spend(3, 3);
    lease.granted({ granted: 4, epoch: 90_000, forgotten: 6 }, 4);
    expect([lease.tokens, lease.lost]).toEqual([4, 5]);
    expect(lease.ask(5).settled).toEqual({ epoch: 90_000, spent: 2, kept: 4, returned: 0 });
  });

  it("never mentions again what an unanswered call reported, and keeps spending until its hold ends", () => {
    const lease = holding(10);
    lease.spend(8, 2);
    lease.ask(3);
    lease.failed(30);
    expect(lease.tokens).toBe(2);
    expect(lease.ask(100).settled).toBeUndefined();
    lease.granted({ granted: 4, epoch: 90_000 }, 101);
    expect(lease.tokens).toBe(6);
    expect(lease.spend(2, 102)).toBe(true);
    expect(lease.ask(103).settled).toEqual({ epoch: 90_000, spent: 0, kept: 4, returned: 0 });
  });

  it("reports again what a call reported that was certainly not carried out", () => {
    const lease = holding(10);
    lease.spend(8, 2);
    lease.ask(3);
    lease.callOff(4);
    expect(lease.ask(100).settled).toEqual({ epoch: 80_000, spent: 8, kept: 2, returned: 0 });
    lease.callOff(101);
    expect(lease.giveBack(200)?.settled).toEqual({ epoch: 80_000, spent: 8, kept: 0, returned: 2 });
    lease.callOff(201);
    expect(lease.tokens).toBe(2);
  });

  it("is spent until its hold ends, counted from before it was asked for, and not a moment longer", () => {
    const lease = new Lease(times, 1000, 100, 0);
    lease.ask(0);
    lease.granted({ granted: 10, epoch: 80_000 }, 4000);
    expect(lease.spend(1, holdMs - 1)).toBe(true);
    expect(lease.spend(1, holdMs)).toBe(false);
    expect(lease.ask(holdMs).settled).toBeUndefined();
    expect(lease.lost).toBe(9);
  });

  it("does not spend strays after their own hold, whatever was granted since", () => {
    const lease = holding(10);
    lease.ask(1000);
    lease.failed(1025);
    lease.ask(60_000);
    lease.granted({ granted: 3, epoch: 150_000 }, 60_001);
    expect(lease.tokens).toBe(13);
    expect(lease.spend(5, holdMs)).toBe(false);
    expect(lease.spend(3, holdMs)).toBe(true);
    expect(lease.spend(1, holdMs)).toBe(false);
  });

  it("keeps what is set aside until it is known whether it is spent", () => {
    const lease = holding(10);
    const era = lease.reserve(4, 2);
    expect(lease.tokens).toBe(6);
    expect(lease.ask(3).settled).toEqual({ epoch: 80_000, spent: 0, kept: 10, returned: 0 });
    lease.granted({ granted: 0, epoch: 90_000 }, 4);
    lease.settle(era, 4, false);
    expect(lease.tokens).toBe(10);
    const next = lease.reserve(4, 5);
    lease.settle(next, 4, true);
    expect(lease.ask(100).settled).toEqual({ epoch: 90_000, spent: 4, kept: 6, returned: 0 });
  });

  it("loses what was set aside before a call without an answer, unless it is spent", () => {
    const lease = holding(10);
    const era = lease.reserve(4, 2);
    lease.ask(3);
    lease.failed(4);
    lease.settle(era, 4, false);
    expect([lease.tokens, lease.lost]).toEqual([6, 4]);
  });

  it("gives back what is in hand, once", () => {
    const lease = holding(10);
    lease.spend(4, 2);
    expect(lease.giveBack(3)).toEqual({
      want: 0,
      holdMs,
      settled: { epoch: 80_000, spent: 4, kept: 0, returned: 6 },
    });
    expect(lease.spend(1, 3)).toBe(false);
    lease.granted({ granted: 0, epoch: 90_000 }, 4);
    expect(lease.giveBack(5)).toBeUndefined();
  });

  it("counts as lost what it gave back in a call without an answer", () => {
    const lease = holding(10);
    lease.giveBack(3);
    lease.failed(4);
    expect([lease.tokens, lease.lost]).toEqual([0, 10]);
  });

  it("gives nothing back that it may not speak of", () => {
    expect(new Lease(times, 10, 10, 0).giveBack(0)).toBeUndefined();
    const strays = holding(10);
    strays.ask(1);
    strays.failed(2);
    expect(strays.giveBack(3)).toBeUndefined();
    expect(holding(10).giveBack(holdMs)).toBeUndefined();
  });

  it("wants more each time it is used up, half when it is refused, and less when little is asked for", () => {
    const lease = new Lease(times, 10_000, 100, 0);
    expect(lease.ask(0).want).toBe(51);
    lease.granted({ granted: 51, epoch: 1 }, 0);
    // 51 in 50 ms: a thousand a second.
    lease.spend(51, 50);
    expect(lease.ask(50).want).toBe(510);
    lease.granted({ granted: 510, epoch: 1 }, 50);
    lease.spend(10, 5050);
    expect(lease.ask(5050).want).toBe(263);
    lease.granted({ granted: 0, epoch: 1 }, 5051);
    expect(lease.want).toBe(131);
  });

  it("waits longer and longer before it asks again if it was granted next to nothing", () => {
    const lease = new Lease(times, 1000, 100, 0);
    let nowMs = 0;
    const pauses: number[] = [];
    for (let i = 0; i < 8; i++) {
      lease.ask(nowMs);
      lease.granted({ granted: 0, epoch: 1 }, nowMs);
      lease.spend(100, nowMs);
      let pause = 0;
      while (!lease.isDue(nowMs + pause)) pause += 10;
      pauses.push(pause);
      nowMs += pause;
    }
    expect(pauses).toEqual([20, 40, 80, 160, 320, 640, 1000, 1000]);
    lease.ask(nowMs);
    lease.granted({ granted: 20, epoch: 1 }, nowMs);
    lease.spend(20, nowMs);
    expect(lease.isDue(nowMs)).toBe(true);
  });

  it("asks again only after more and more demand if it was granted next to nothing, and has nothing", () => {
    const lease = new Lease(times, 1000, 100, 0);
    let nowMs = 0;
    const waits: number[] = [];
    for (let i = 0; i < 5; i++) {
      lease.ask(nowMs);
      lease.granted({ granted: 0, epoch: 1 }, nowMs);
      nowMs += 10_000;
      let asked = 0;
      for (; !lease.isDue(nowMs); asked++) lease.spend(1, nowMs);
      waits.push(asked);
    }
    expect(waits).toEqual([8, 16, 32, 64, 64]);
    lease.ask(nowMs);
    lease.granted({ granted: 20, epoch: 1 }, nowMs);
    for (let i = 0; i < 20; i++) lease.spend(1, nowMs);
    expect(lease.isDue(nowMs)).toBe(true);
    // What is in hand is renewed in time, however little it is.
    lease.ask(nowMs);
    lease.granted({ granted: 1, epoch: 1 }, nowMs);
    expect(lease.isDue(nowMs + 4999)).toBe(false);
    expect(lease.isDue(nowMs + 5000)).toBe(true);
  });

  it("can wait for more while the units in hand last and no request lacked any", () => {
    const lease = holding(100);
    // A hundred a second: of 100 the last 20 last for 200 ms.
    lease.spend(80, 2);
    expect(lease.canWait(100, 2)).toBe(true);
    expect(lease.canWait(250, 2)).toBe(false);
    lease.spend(9, 2);
    expect(lease.canWait(100, 2)).toBe(true);
    lease.spend(1, 2);
    expect(lease.canWait(10, 2)).toBe(false);
    const ended = holding(100);
    expect(ended.canWait(100, holdMs - 1)).toBe(true);
    expect(ended.canWait(100, holdMs)).toBe(false);
    const lacking = holding(100);
    expect(lacking.spend(101, 2)).toBe(false);
    expect(lacking.canWait(100, 2)).toBe(false);
    lacking.ask(2000);
    lacking.granted({ granted: 50, epoch: 1 }, 2001);
    expect(lacking.canWait(100, 2001)).toBe(true);
  });

  it("never reports a unit twice, and never more than it was granted", () => {
    const step = fc.oneof(
      fc.record({ does: fc.constant("spend" as const), cost: fc.integer({ min: 1, max: 5 }) }),
      fc.record({ does: fc.constant("reserve" as const), cost: fc.integer({ min: 1, max: 5 }) }),
      fc.record({ does: fc.constant("settle" as const), spent: fc.boolean() }),
      fc.record({ does: fc.constant("ask" as const), granted: fc.integer({ min: 0, max: 20 }) }),
      fc.record({ does: fc.constant("giveBack" as const) }),
      fc.record({ does: fc.constant("answer" as const), how: fc.constantFrom("granted", "failed", "callOff") }),
      fc.record({ does: fc.constant("wait" as const), ms: fc.constantFrom(1, 4000, 30_000, 70_000) }),
    );
    fc.assert(
      fc.property(fc.array(step, { maxLength: 80 }), (steps) => {
        const lease = new Lease(times, 1000, 100, 0);
        const reserved: { readonly era: number; readonly cost: number }[] = [];
        let nowMs = 1;
        let granted = 0;
        let told = 0;
        let spent = 0;
        let epoch = 1;
        let call: { readonly ask: LeaseAsk; readonly granted: number } | undefined;
        for (const one of steps) {
          if (one.does === "wait") nowMs += one.ms;
          if (one.does === "spend" && lease.spend(one.cost, nowMs)) spent += one.cost;
          if (one.does === "reserve") {
            const era = lease.reserve(one.cost, nowMs);
            if (era !== -1) reserved.push({ era, cost: one.cost });
          }
          if (one.does === "settle" && reserved.length > 0) {
            const { era, cost } = reserved.shift()!;
            lease.settle(era, cost, one.spent);
            if (one.spent) spent += cost;
          }
          if (one.does === "ask" && call === undefined) call = { ask: lease.ask(nowMs), granted: one.granted };
          if (one.does === "giveBack" && call === undefined) {
            const ask = lease.giveBack(nowMs);
            if (ask !== undefined) call = { ask, granted: 0 };
          }
          if (one.does === "answer" && call !== undefined) {
            const { settled } = call.ask;
            if (one.how === "granted") {
              granted += call.granted;
              epoch += 1;
              told += (settled?.spent ?? 0) + (settled?.returned ?? 0);
              lease.granted({ granted: call.granted, epoch }, nowMs);
            } else if (one.how === "failed") {
              // It may have been carried out.
              told += (settled?.spent ?? 0) + (settled?.returned ?? 0);
              lease.failed(nowMs);
            } else lease.callOff(nowMs);
            call = undefined;
          }
          expect(told).toBeLessThanOrEqual(granted);
          expect(spent + lease.tokens).toBeLessThanOrEqual(granted);
        }
      }),
      { numRuns: 500 },
    );
  });
});
