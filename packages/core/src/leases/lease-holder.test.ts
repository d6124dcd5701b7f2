import { describe, expect, it } from "vitest";
import { ManualClock } from "../clock.ts";
import type { LeaseAsk } from "../counters/counter-store.ts";
import { SluiceError } from "../errors.ts";
import { Lease } from "./lease.ts";
import { type HeldLease, LeaseHolder, type LeaseOutcome } from "./lease-holder.ts";

type Outcome = LeaseOutcome<{ readonly granted: number; readonly epoch: number }>;

const times = { refreshMs: 1_000, leaseMs: 5_000, staleMs: 10_000 };
const unsent: Outcome = { kind: "unanswered", mayBeDone: false };
const lost: Outcome = { kind: "unanswered", mayBeDone: true };

/** A holder whose calls the test answers. */
function setUp(unsentGiveBack: "drop" | "keep" = "drop") {
  const clock = new ManualClock();
  const timers: (() => void)[] = [];
  const calls: { readonly ask: LeaseAsk; readonly settle: (outcome: Outcome) => void }[] = [];
  const log: string[] = [];
  const held: HeldLease = { lease: new Lease(times, 1_000, 100, 0), phase: "held", lostCounted: 0 };
  const holder = new LeaseHolder<HeldLease, { readonly granted: number; readonly epoch: number }>(
    {
      clock,
      callLater: (work) => {
        timers.push(work);
        return () => void timers.splice(timers.indexOf(work), 1);
      },
      sweepEveryMs: 100,
    },
    {
      size: 1,
      unsentGiveBack,
      send: (_, ask, settle) => void calls.push({ ask, settle }),
      hear: () => undefined,
      onGranted: () => void log.push("granted"),
      onRefused: () => void log.push("refused"),
      onUnanswered: () => void log.push("unanswered"),
      onLeave: () => void log.push("left"),
      onGone: () => void log.push("gone"),
      sweep: () => void log.push("swept"),
    },
  );
  const settle = (outcome: Outcome): LeaseAsk => {
    const call = calls.shift()!;
    call.settle(outcome);
    return call.ask;
  };
  const answer = (granted: number): LeaseAsk => settle({ kind: "answer", value: { granted, epoch: 7 } });
  /** With units in hand. */
  const hold = (): void => {
    holder.ask(held, 0);
    answer(100);
    log.length = 0;
  };
  return { holder, held, calls, log, timers, settle, answer, hold };
}

describe("a lease", () => {
  it("that leaves is given back, and is gone when that is answered", () => {
    const { holder, held, hold, answer, log } = setUp();
    hold();
    holder.leave(held, 1);
    expect(held.phase).toBe("giving");
    expect(answer(0)).toMatchObject({ want: 0, settled: { returned: 100 } });
    expect(held.phase).toBe("gone");
    expect(log).toEqual(["left", "gone"]);
    expect(holder.counts).toMatchObject({ calls: 2, fetches: 1, granted: 100, returned: 100, lost: 0 });
  });

  it("that leaves during its call is given back with what the call brings", () => {
    const { holder, held, calls, hold, answer } = setUp();
    hold();
    holder.ask(held, 1);
    holder.leave(held, 1);
    expect([held.phase, calls.length]).toEqual(["leaving", 1]);
    answer(50);
    expect(held.phase).toBe("giving");
    expect(answer(0)).toMatchObject({ want: 0, settled: { returned: 150 } });
    expect(held.phase).toBe("gone");
  });

  it("is gone without a call if there is nothing to be given back", () => {
    const { holder, held, calls, log } = setUp();
    holder.leave(held, 0);
    expect(calls).toEqual([]);
    expect(log).toEqual(["left", "gone"]);
  });

  it("stays while no answer comes, and is spent", () => {
    const { holder, held, hold, settle, log } = setUp();
    hold();
    holder.ask(held, 1);
    settle(lost);
    expect(held.phase).toBe("held");
    expect(held.lease.spend(1, 2)).toBe(true);
    expect(log).toEqual(["unanswered"]);
    expect(holder.counts).toMatchObject({ failedFetches: 1, failedReturns: 0 });
  });

  it("is lost if it is unknown whether it was given back", () => {
    const { holder, held, hold, settle } = setUp("keep");
    hold();
    holder.leave(held, 1);
    settle(lost);
    expect(held.phase).toBe("gone");
    expect(holder.counts).toMatchObject({ returned: 0, lost: 100, failedReturns: 1 });
  });

  it("whose give-back never left is kept or dropped, as its owner says", () => {
    for (const [choice, phase, lostUnits] of [["keep", "held", 0] as const, ["drop", "gone", 100] as const]) {
      const { holder, held, hold, settle } = setUp(choice);
      hold();
      holder.leave(held, 1);
      settle(unsent);
      expect(held.phase).toBe(phase);
      expect(holder.counts.lost).toBe(lostUnits);
    }
  });

  it("is given back if more of it is refused", () => {
    const { holder, held, hold, settle, answer, log } = setUp();
    hold();
    holder.ask(held, 1);
    settle({ kind: "refused", error: new SluiceError("not_leasable", "not leased") });
    expect(held.phase).toBe("giving");
    expect(answer(0)).toMatchObject({ settled: { returned: 100 } });
    expect(log).toEqual(["refused", "left", "gone"]);
  });
});

describe("a holder that is drained", () => {
  it("waits until everything is given back, and keeps nothing that could not be", async () => {
    const { holder, held, hold, settle, timers } = setUp("keep");
    hold();
    let drained = false;
    const draining = holder.drain([held], 500, 1_000).then(() => {
      drained = true;
    });
    await Promise.resolve();
    expect(drained).toBe(false);
    settle(unsent);
    await draining;
    expect(held.phase).toBe("gone");
    expect(timers).toEqual([]);
  });

  it("waits no longer than it may", async () => {
    const { holder, held, hold, timers } = setUp();
    hold();
    const draining = holder.drain([held], 500, 1_000);
    timers[0]!();
    await draining;
    expect(held.phase).toBe("giving");
  });

  it("is done at once if all are gone", async () => {
    const { holder, held } = setUp();
    holder.leave(held, 0);
    await holder.drain([held], 500, 1_000);
    expect(held.phase).toBe("gone");
  });
});
