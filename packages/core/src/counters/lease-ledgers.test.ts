import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { ManualClock } from "../clock.ts";
import { compileTestLimit, conversationStartMs, resolvedLimit, testWindow } from "../testing/index.ts";
import type { LeaseAnswer, SettledGrant } from "./counter-store.ts";
import { MemoryCounters } from "./memory-counters.ts";

const holdMs = 10_000;

/** Allows 100 units of each subject to be out. */
const limit = compileTestLimit({ algorithm: "gcra", windows: [testWindow(1000, 1000)], maxOvershoot: 0.1 });

function open(): { clock: ManualClock; ask(subject: string, want: number, settled?: SettledGrant): LeaseAnswer } {
  const clock = new ManualClock(conversationStartMs);
  const counters = new MemoryCounters({ clock, maxIds: 2 });
  return {
    clock,
    ask: (subject, want, settled) => counters.lease([resolvedLimit(limit, subject)], { want, holdMs, settled }),
  };
}

describe("when as many counters are leased as may be", () => {
  it("nothing is granted of another, and none of those is forgotten for it", () => {
    const { ask } = open();
    const granted = [ask("a", 100).granted, ask("b", 100).granted];
    expect([ask("c", 100).granted, ask("d", 100).granted]).toEqual([0, 0]);
    expect([ask("a", 0).unspent, ask("b", 0).unspent]).toEqual(granted);
  });

  it("those remain leased, even if all of it was spent", () => {
    const { ask } = open();
    const { epoch, granted } = ask("a", 100);
    ask("b", 100);
    const renewed = ask("a", 100, { epoch, spent: granted, kept: 0, returned: 0 });
    expect(renewed.granted).toBe(granted);
    expect(ask("a", 100, { epoch: renewed.epoch, spent: 0, kept: granted, returned: 0 }).unspent).toBe(75);
  });

  it("others are, as soon as one is settled or has ended", () => {
    const { clock, ask } = open();
    const { epoch, granted } = ask("a", 100);
    ask("b", 100);
    ask("a", 0, { epoch, spent: 0, kept: 0, returned: granted });
    expect(ask("c", 100).granted).toBe(granted);
    expect(ask("d", 100).granted).toBe(0);
    clock.advance(holdMs + 15_000);
    expect(ask("d", 100).granted).toBe(granted);
  });

  it("a false claim to have kept units takes no other ledger's place", () => {
    const { ask } = open();
    const granted = [ask("a", 100).granted, ask("b", 100).granted];
    for (let i = 0; i < 10; i++) ask(`c${i}`, 0, { epoch: 1, spent: 0, kept: 50, returned: 0 });
    expect([ask("a", 0).unspent, ask("b", 0).unspent]).toEqual(granted);
  });
});

/** One call of a client that may say anything. */
const anyCall = fc.record({
  want: fc.integer({ min: 0, max: 200 }),
  /** Which of the epochs that were answered so far it speaks of, or one that was not. */
  of: fc.integer({ min: 0, max: 12 }),
  spent: fc.integer({ min: 0, max: 300 }),
  kept: fc.oneof(fc.integer({ min: 0, max: 300 }), fc.constant(1_000_000_000)),
  returned: fc.oneof(fc.integer({ min: 0, max: 300 }), fc.constant(1_000_000_000)),
  passMs: fc.integer({ min: 0, max: 15_000 }),
});

describe("clients that say anything", () => {
  it("have no more out than the allowance, and give back no more than they were granted", () => {
    const quota = compileTestLimit({
      algorithm: "fixed_window",
      windows: [testWindow(1000, 86_400_000)],
      maxOvershoot: 0.1,
    });
    fc.assert(
      fc.property(fc.array(anyCall, { maxLength: 40 }), (calls) => {
        const clock = new ManualClock(conversationStartMs);
        const counters = new MemoryCounters({ clock });
        const limits = [resolvedLimit(quota, "u")];
        const remaining = (): number => counters.peek(limits).outcomes[0]!.remaining;
        counters.take([{ ...limits[0]!, cost: 500 }]);
        const epochs: number[] = [];
        for (const { want, of, passMs, ...said } of calls) {
          const before = counters.lease(limits, { want: 0, holdMs }).unspent;
          const settled = { epoch: epochs[of] ?? conversationStartMs + of * 10_000, ...said };
          const answer = counters.lease(limits, { want, holdMs, settled });
          epochs.unshift(answer.epoch);
          expect(answer.unspent - answer.granted).toBeLessThanOrEqual(before);
          expect(answer.unspent).toBeLessThanOrEqual(100);
          expect(said.kept - answer.forgotten).toBeLessThanOrEqual(before);
          expect(remaining()).toBeLessThanOrEqual(500);
          clock.advance(passMs);
        }
      }),
    );
  });
});
