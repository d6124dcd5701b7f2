import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { ManualClock } from "../clock.ts";
import { type Algorithm, algorithms } from "../policy/policy.ts";
import { compileTestLimit, conversationStartMs, resolvedLimit, testWindow } from "../testing/index.ts";
import { ExpiryQueue } from "./expiry-queue.ts";
import { MemoryCounters } from "./memory-counters.ts";
import { StoreUnavailable } from "./store-unavailable.ts";

const slow = testWindow(30, 10_000_000_000);

function open(algorithm: Algorithm, window = slow, maxIds?: number) {
  const clock = new ManualClock(conversationStartMs, 1000);
  const store = new MemoryCounters({ clock, ...(maxIds !== undefined && { maxIds }) });
  const limit = compileTestLimit({ algorithm, windows: [window] });
  return {
    clock,
    store,
    asked: (cost: number) => [resolvedLimit(limit, "u", cost)],
    hold: (cost: number, holdMs: number) =>
      store.take([resolvedLimit(limit, "u", cost)], { receipt: true, holdMs }).receipt,
  };
}

/** A hold as the model sees it. */
interface Modelled {
  readonly id: string;
  readonly amount: number;
  endsMs: number;
  actual: number;
  charged: number;
  state: "held" | "expired" | "settled";
}

const step = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.record({
      does: fc.constant("hold" as const),
      amount: fc.integer({ min: 1, max: 12 }),
      holdMs: fc.constantFrom(1, 50, 400, 5000, 60_000),
    }),
  },
  {
    weight: 6,
    arbitrary: fc.record({
      does: fc.constant("commit" as const),
      which: fc.nat(8),
      actual: fc.nat(15),
      last: fc.boolean(),
      // A reply that was lost makes its caller ask again.
      times: fc.constantFrom(1, 1, 1, 2, 3),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      does: fc.constant("extend" as const),
      which: fc.nat(8),
      holdMs: fc.constantFrom(1, 300, 9000),
    }),
  },
  { weight: 2, arbitrary: fc.record({ does: fc.constant("take" as const), cost: fc.integer({ min: 1, max: 9 }) }) },
  { weight: 4, arbitrary: fc.record({ does: fc.constant("wait" as const), ms: fc.constantFrom(0, 1, 49, 300, 6000) }) },
  {
    weight: 1,
    arbitrary: fc.record({
      does: fc.constantFrom("clock-back" as const, "wall" as const),
      ms: fc.integer({ min: -90_000, max: 90_000 }),
    }),
  },
);

describe("nothing held leaks, and nothing is counted twice", () => {
  for (const algorithm of algorithms) {
    it(`${algorithm}: whatever is reported, repeated, abandoned or late, a counter holds what a plain sum does`, () => {
      fc.assert(
        fc.property(fc.array(step, { minLength: 1, maxLength: 60 }), (steps) => {
          const { clock, store, asked, hold } = open(algorithm);
          const holds: Modelled[] = [];
          let taken = 0;
          const used = (): number => holds.reduce((sum, { charged }) => sum + charged, taken);
          const expire = (): void => {
            for (const one of holds) {
              if (one.state !== "held" || one.endsMs > store.latestMs) continue;
              one.state = "expired";
              if (one.actual < one.amount) one.charged = one.actual;
            }
          };
          for (const one of steps) {
            store.peek(asked(1));
            expire();
            const chosen = "which" in one && holds.length > 0 ? holds[one.which % holds.length]! : undefined;
            if (one.does === "hold") {
              const id = hold(one.amount, one.holdMs);
              expect(id !== undefined).toBe(used() + one.amount <= 30);
              const endsMs = store.latestMs + one.holdMs;
              const { amount } = one;
              if (id !== undefined) holds.push({ id, amount, charged: amount, actual: 0, endsMs, state: "held" });
            } else if (one.does === "take") {
              const passes = store.take(asked(one.cost)).taken;
              expect(passes).toBe(used() + one.cost <= 30);
              if (passes) taken += one.cost;
            } else if (one.does === "commit" && chosen !== undefined) {
              // Debt is bounded at twice the limit; what is beyond would not add up.
              const actual = Math.min(one.actual, chosen.charged + 60 - used());
              for (let i = 0; i < one.times; i++) {
                const before = chosen.state;
                const answer = store.holds.commit(chosen.id, actual, one.last);
                expect(answer.replayed).toBe(before === "settled");
                if (before !== "settled") {
                  chosen.actual = Math.max(chosen.actual, actual);
                  chosen.charged = Math.max(chosen.charged, chosen.actual);
                  if (one.last) {
                    if (before === "held") chosen.charged = chosen.actual;
                    chosen.state = "settled";
                  }
                }
                const overdraft = Math.max(chosen.actual - chosen.amount, 0);
                expect(answer).toMatchObject({ state: chosen.state, actual: chosen.actual, overdraft });
              }
            } else if (one.does === "extend" && chosen !== undefined) {
              expect(store.holds.extend(chosen.id, one.holdMs).state).toBe(chosen.state);
              if (chosen.state === "held") chosen.endsMs = Math.max(chosen.endsMs, store.latestMs + one.holdMs);
            } else if (one.does === "wait") clock.advance(one.ms);
            else if (one.does === "clock-back") clock.advance(-Math.abs(one.ms));
            else if (one.does === "wall") clock.stepWall(one.ms);
            const { remaining } = store.peek(asked(1)).outcomes[0]!;
            expire();
            expect(remaining).toBe(Math.max(30 - used(), 0));
          }
          expect(store.stats.holds).toBe(holds.filter(({ state }) => state === "held").length);
        }),
        { numRuns: 300 },
      );
    });
  }
});

describe("a hold", () => {
  it("is never forgotten for another: when there is no room, it is refused and charges nothing", () => {
    const { clock, store, asked, hold } = open("fixed_window", slow, 3);
    for (let i = 0; i < 3; i++) hold(1, 1000);
    expect(() => hold(1, 1000)).toThrow(StoreUnavailable);
    expect(store.peek(asked(1)).outcomes[0]!.remaining).toBe(27);
    clock.advance(1000);
    expect(hold(30, 1000)).toBeDefined();
  });

  it("of a crowd of one subject is given back on the strict side, so that settling it does not look at all others", () => {
    const { store, asked, hold } = open("gcra", testWindow(2000, 10_000_000_000));
    const settleLastFirst = (count: number): number => {
      const ids = Array.from({ length: count }, () => hold(2, 1000)!);
      for (const id of ids.reverse()) store.holds.commit(id, 1, true);
      const { remaining } = store.peek(asked(1)).outcomes[0]!;
      store.reset(asked(1));
      return remaining;
    };
    expect(settleLastFirst(500)).toBe(2000 - 500);
    expect(settleLastFirst(1000)).toBe(2000 - 1000 - 250);
  });

  it("gives back to a bucket no more than is still ahead of now", () => {
    const { clock, store, asked, hold } = open("token_bucket", testWindow(10, 1000));
    const id = hold(10, 60_000)!;
    clock.advance(900);
    expect(store.take(asked(9)).taken).toBe(true);
    store.holds.commit(id, 0, true);
    // Nine of the ten have drained, and nine have been taken since.
    expect(store.peek(asked(1)).outcomes[0]!.remaining).toBe(1);
  });
});

describe("the queue of what ends", () => {
  it("hands out the earliest first, whatever joins, moves and leaves", () => {
    const action = fc.record({
      does: fc.constantFrom("add", "move", "remove", "take"),
      which: fc.nat(),
      ms: fc.nat(50),
    });
    fc.assert(
      fc.property(fc.array(action, { maxLength: 60 }), (actions) => {
        const queue = new ExpiryQueue<{ endsMs: number; place: number }>();
        let members: { endsMs: number; place: number }[] = [];
        for (const { does, which, ms } of actions) {
          const chosen = members[which % Math.max(members.length, 1)];
          if (does === "add" || chosen === undefined) {
            const one = { endsMs: ms, place: 0 };
            members.push(one);
            queue.add(one);
          } else if (does === "move") queue.move(chosen, ms);
          else {
            const gone = does === "remove" ? chosen : queue.takeEnded(ms);
            if (does === "remove") queue.remove(chosen);
            else expect(gone?.endsMs ?? Number.POSITIVE_INFINITY).toBe(endingBy(members, ms));
            members = members.filter((one) => one !== gone);
          }
          expect(queue.nextMs).toBe(endingBy(members, Number.POSITIVE_INFINITY));
          expect(queue.size).toBe(members.length);
        }
      }),
    );
  });
});

/** The earliest end, if it is not after this. */
function endingBy(members: readonly { readonly endsMs: number }[], byMs: number): number {
  const first = Math.min(...members.map(({ endsMs }) => endsMs));
  return first <= byMs ? first : Number.POSITIVE_INFINITY;
}
