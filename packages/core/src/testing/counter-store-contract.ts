// Long because it is one list: every promise of `CounterStore`, each a case that any store can be held to.
import type { CounterStore, LimitOutcome, ResolvedLimit, TakeAnswer } from "../counters/counter-store.ts";
import { SluiceError } from "../errors.ts";
import type { CompiledLimit } from "../limits/compiled-limit.ts";
import { type Algorithm, algorithms } from "../policy/policy.ts";
import { type Conversation, conversations, type Step, type StoreAction } from "./conversations.ts";
import { compileTestLimit, resolvedLimit, testWindow } from "./test-limit.ts";

/** A store to be held to the contract, opened at `conversationStartMs`, whose time the test moves. */
export interface StoreUnderTest {
  readonly store: CounterStore;
  advance(ms: number): void | Promise<void>;
}

/** One promise of `CounterStore`. Runs under any test runner: it throws when the promise is broken. */
export interface ContractCase {
  readonly name: string;
  run(open: () => StoreUnderTest | Promise<StoreUnderTest>): Promise<void>;
}

export function expectEqual(actual: unknown, expected: unknown, because: string): void {
  const [got, wanted] = [JSON.stringify(actual), JSON.stringify(expected)];
  if (got !== wanted) throw new Error(`expected ${wanted}, got ${got}: ${because}`);
}

export function only(answer: TakeAnswer): LimitOutcome {
  expectEqual(answer.outcomes.length, 1, "one outcome per resolved limit");
  return answer.outcomes[0]!;
}

function answerFrom(outcome: LimitOutcome): Step["answer"] {
  if (outcome.fits === "now") return "allowed";
  return outcome.fits === "later" ? "denied" : outcome.fits;
}

async function carryOut(store: CounterStore, limit: CompiledLimit, action: StoreAction): Promise<void> {
  if (action.does === "block") await store.block([resolvedLimit(limit, "u1")], action.forMs);
  else await store.charge([resolvedLimit(limit, "u1", action.does === "credit" ? -action.cost : action.cost)]);
}

function conversationCase(conversation: Conversation): ContractCase {
  return {
    name: `conversation: ${conversation.name}`,
    async run(open) {
      const { store, advance } = await open();
      const limit = compileTestLimit(conversation);
      let at = 0;
      for (const step of conversation.steps) {
        await advance(step.at - at);
        at = step.at;
        if (step.first !== undefined) await carryOut(store, limit, step.first);
        const why = `at ${step.at} ms, cost ${step.cost}: ${step.because}`;
        const asked = [resolvedLimit(limit, "u1", step.cost)];
        const peeked = only(await store.peek(asked));
        expectEqual(answerFrom(peeked), step.answer, `peek, ${why}`);
        const answer = await store.take(asked);
        const outcome = only(answer);
        expectEqual(answerFrom(outcome), step.answer, why);
        expectEqual(answer.taken, step.answer === "allowed", why);
        expectEqual(outcome.remaining, step.remaining, `remaining, ${why}`);
        if (step.speaks !== undefined)
          expectEqual(limit.windows.indexOf(outcome.window), step.speaks, `the deciding window, ${why}`);
        if (step.answer === "allowed") expectEqual(outcome.retryAfterMs, 0, `retryAfterMs, ${why}`);
        if (step.answer === "never")
          expectEqual(outcome.retryAfterMs === Number.POSITIVE_INFINITY, true, `no wait helps, ${why}`);
        if (step.retryAfterMs !== undefined)
          expectEqual(outcome.retryAfterMs, step.retryAfterMs, `retryAfterMs, ${why}`);
        if (step.resetAfterMs !== undefined)
          expectEqual(outcome.resetAfterMs, step.resetAfterMs, `resetAfterMs, ${why}`);
        if (step.queue !== undefined) {
          expectEqual([outcome.queuePosition, outcome.queueDelayMs], step.queue, `place in the queue, ${why}`);
        }
      }
      await store.close();
    },
  };
}

export function forEachAlgorithm(
  name: string,
  run: (algorithm: Algorithm, under: StoreUnderTest) => Promise<void>,
  which: readonly Algorithm[] = algorithms,
): ContractCase[] {
  return which.map((algorithm) => ({
    name: `${algorithm}: ${name}`,
    async run(open) {
      const under = await open();
      await run(algorithm, under);
      await under.store.close();
    },
  }));
}

export const counterStoreContract: readonly ContractCase[] = [
  ...conversations.map(conversationCase),

  ...forEachAlgorithm("a request of several limits takes from all or from none", async (algorithm, { store }) => {
    const wide = compileTestLimit({ algorithm, windows: [testWindow(10, 60_000)], policy: "wide" });
    const narrow = compileTestLimit({ algorithm, windows: [testWindow(2, 60_000)], policy: "narrow" });
    const ask = (cost: number): TakeAnswer | Promise<TakeAnswer> =>
      store.take([resolvedLimit(wide, "t", cost), resolvedLimit(narrow, "u", cost)]);
    expectEqual((await ask(2)).taken, true, "both have room");
    const denied = await ask(1);
    expectEqual(denied.taken, false, "the narrow one is used up");
    expectEqual(denied.outcomes.map(answerFrom), ["allowed", "denied"], "each limit answers for itself");
    expectEqual(denied.outcomes[0]!.remaining, 8, "the wide one was not charged by the denial");
    expectEqual(only(await store.peek([resolvedLimit(wide, "t", 1)])).remaining, 8, "nor is it seen by a peek");
  }),

  {
    name: "a request without limits is taken, and disturbs no concurrent request",
    async run(open) {
      const { store } = await open();
      const limit = compileTestLimit({ algorithm: "gcra", windows: [testWindow(2, 60_000)] });
      const [one, other] = [resolvedLimit(limit, "one"), resolvedLimit(limit, "other")];
      await store.take([{ ...other, cost: 2 }]);
      const [nothing, both] = await Promise.all([store.take([]), store.take([one, other])]);
      expectEqual([nothing.taken, nothing.outcomes], [true, []], "there is nothing to deny it");
      expectEqual(both.taken, false, "one of two is used up");
      expectEqual(only(await store.peek([one])).remaining, 2, "and the other was not charged");
      await store.close();
    },
  },

  ...forEachAlgorithm("peek changes nothing, however often", async (algorithm, { store }) => {
    const limit = compileTestLimit({ algorithm, windows: [testWindow(3, 60_000)] });
    await store.take([resolvedLimit(limit, "u", 1)]);
    for (let i = 0; i < 10; i++) {
      const peeked = await store.peek([resolvedLimit(limit, "u", 2)]);
      expectEqual([peeked.taken, only(peeked).fits, only(peeked).remaining], [false, "now", 2], "as it stands");
    }
    expectEqual((await store.take([resolvedLimit(limit, "u", 2)])).taken, true, "what was peeked at is still there");
  }),

  ...forEachAlgorithm(
    "denials keep no subject out: the counter frees while they keep coming",
    async (algorithm, { store, advance }) => {
      const limit = compileTestLimit({ algorithm, windows: [testWindow(2, 1000)] });
      await store.take([resolvedLimit(limit, "u", 2)]);
      let allowedAt = -1;
      for (let at = 0; at <= 3000 && allowedAt < 0; at += 50) {
        if ((await store.take([resolvedLimit(limit, "u", 1)])).taken) allowedAt = at;
        await advance(50);
      }
      expectEqual(allowedAt >= 0, true, "two windows of denials later it has to pass");
    },
  ),

  ...forEachAlgorithm("subjects and policies do not share counters", async (algorithm, { store }) => {
    const one = compileTestLimit({ algorithm, windows: [testWindow(1, 60_000)], policy: "one" });
    const other = compileTestLimit({ algorithm, windows: [testWindow(1, 60_000)], policy: "other" });
    for (const [limit, subject] of [
      [one, "a"],
      [one, "b"],
      [one, ""],
      [other, "a"],
      [one, "a|b"],
      [one, "a\\|b"],
    ] as const) {
      expectEqual(
        (await store.take([resolvedLimit(limit, subject)])).taken,
        true,
        `first for ${limit.identity} ${subject}`,
      );
      expectEqual(
        (await store.take([resolvedLimit(limit, subject)])).taken,
        false,
        `second for ${limit.identity} ${subject}`,
      );
    }
  }),

  ...forEachAlgorithm("give returns a take, once", async (algorithm, { store, advance }) => {
    const limit = compileTestLimit({ algorithm, windows: [testWindow(4, 60_000)] });
    const { receipt } = await store.take([resolvedLimit(limit, "u", 3)], { receipt: true });
    expectEqual(typeof receipt, "string", "a take that asks for a receipt gets one");
    await advance(10);
    expectEqual(await store.give(receipt!), true, "given back");
    expectEqual(await store.give(receipt!), false, "and only once");
    expectEqual((await store.take([resolvedLimit(limit, "u", 4)])).taken, true, "all four are there again");
    expectEqual((await store.take([resolvedLimit(limit, "u", 1)])).taken, false, "and not a fifth");
  }),

  ...forEachAlgorithm("a give-back that comes too late is void", async (algorithm, { store, advance }) => {
    const limit = compileTestLimit({ algorithm, windows: [testWindow(4, 1000)] });
    const { receipt } = await store.take([resolvedLimit(limit, "u", 4)], { receipt: true });
    await advance(2000);
    expectEqual((await store.take([resolvedLimit(limit, "u", 4)])).taken, true, "the first take has passed");
    expectEqual(await store.give(receipt!), false, "its moment is over");
    expectEqual((await store.take([resolvedLimit(limit, "u", 1)])).taken, false, "and nothing more is admitted");
  }),

  ...forEachAlgorithm("a give-back leaves what others took since", async (algorithm, { store, advance }) => {
    const limit = compileTestLimit({ algorithm, windows: [testWindow(10, 10_000)] });
    const { receipt } = await store.take([resolvedLimit(limit, "u", 5)], { receipt: true });
    await advance(3000);
    await store.take([resolvedLimit(limit, "u", 2)]);
    await store.give(receipt!);
    const { remaining } = only(await store.peek([resolvedLimit(limit, "u", 1)]));
    expectEqual(remaining, 8, "as if only the two had ever been taken");
  }),

  ...forEachAlgorithm(
    "a give-back in the next window leaves that window's own takes",
    async (algorithm, { store, advance }) => {
      const limit = compileTestLimit({ algorithm, windows: [testWindow(10, 1000)] });
      const { receipt } = await store.take([resolvedLimit(limit, "u", 8)], { receipt: true });
      await advance(1500);
      await store.take([resolvedLimit(limit, "u", 5)]);
      await store.give(receipt!);
      const { remaining } = only(await store.peek([resolvedLimit(limit, "u", 1)]));
      expectEqual(remaining, 5, "the five that were taken since are still counted");
    },
  ),

  ...forEachAlgorithm("a give-back after a reset is void", async (algorithm, { store }) => {
    const limit = compileTestLimit({ algorithm, windows: [testWindow(4, 60_000)] });
    const asked = [resolvedLimit(limit, "u", 4)];
    const { receipt } = await store.take(asked, { receipt: true });
    await store.reset(asked);
    expectEqual((await store.take(asked)).taken, true, "a reset counter is as good as new");
    expectEqual(await store.give(receipt!), false, "what was reset cannot be given back");
    expectEqual((await store.take([resolvedLimit(limit, "u", 1)])).taken, false, "nothing more is admitted");
  }),

  ...forEachAlgorithm(
    "charge takes more than there is, and its debt is bounded",
    async (algorithm, { store, advance }) => {
      const limit = compileTestLimit({ algorithm, windows: [testWindow(10, 1000)] });
      await store.charge([resolvedLimit(limit, "u", 3)]);
      expectEqual(only(await store.peek([resolvedLimit(limit, "u", 1)])).remaining, 7, "a charge that fits is a take");
      for (let i = 0; i < 50; i++) await store.charge([resolvedLimit(limit, "u", 10)]);
      const inDebt = only(await store.take([resolvedLimit(limit, "u", 1)]));
      expectEqual(inDebt.fits, "later", "used up, and in debt");
      expectEqual(inDebt.retryAfterMs <= 1600, true, "for one capacity at most, however much was charged");
      await advance(2000);
      expectEqual(
        (await store.take([resolvedLimit(limit, "u", 1)])).taken,
        true,
        "no debt lasts longer than two windows",
      );
    },
  ),

  ...forEachAlgorithm("a credit gives back without a receipt, and not beyond empty", async (algorithm, { store }) => {
    const limit = compileTestLimit({ algorithm, windows: [testWindow(10, 60_000)] });
    const remaining = async (): Promise<number> => only(await store.peek([resolvedLimit(limit, "u")])).remaining;
    await store.take([resolvedLimit(limit, "u", 8)]);
    await store.take([resolvedLimit(limit, "other", 8)]);
    await store.charge([resolvedLimit(limit, "u", -3)]);
    expectEqual(await remaining(), 5, "three of the eight came back");
    await store.charge([resolvedLimit(limit, "u", -100_000)]);
    expectEqual(await remaining(), 10, "empty is the end of it");
    expectEqual((await store.take([resolvedLimit(limit, "u", 10)])).taken, true, "all ten are there");
    expectEqual((await store.take([resolvedLimit(limit, "u", 1)])).taken, false, "and not an eleventh");
    expectEqual(only(await store.peek([resolvedLimit(limit, "other")])).remaining, 2, "others are not concerned");
  }),

  ...forEachAlgorithm("a credit pays debt off first", async (algorithm, { store }) => {
    const limit = compileTestLimit({ algorithm, windows: [testWindow(10, 60_000)] });
    await store.charge([resolvedLimit(limit, "u", 10)]);
    await store.charge([resolvedLimit(limit, "u", 6)]);
    await store.charge([resolvedLimit(limit, "u", -5)]);
    expectEqual((await store.take([resolvedLimit(limit, "u")])).taken, false, "one is still owed");
    await store.charge([resolvedLimit(limit, "u", -3)]);
    expectEqual(only(await store.peek([resolvedLimit(limit, "u")])).remaining, 2, "then two are there");
  }),

  ...forEachAlgorithm(
    "a credit to a counter that was never used changes nothing",
    async (algorithm, { store, advance }) => {
      const limit = compileTestLimit({ algorithm, windows: [testWindow(4, 1000)] });
      await store.charge([resolvedLimit(limit, "u", -3)]);
      const fresh = only(await store.peek([resolvedLimit(limit, "u")]));
      expectEqual([fresh.remaining, fresh.resetAfterMs], [4, 0], "as good as new");
      await store.take([resolvedLimit(limit, "u", 4)]);
      await advance(2000);
      await store.charge([resolvedLimit(limit, "u", -3)]);
      expectEqual((await store.take([resolvedLimit(limit, "u", 4)])).taken, true, "idle again: the whole window");
      expectEqual((await store.take([resolvedLimit(limit, "u")])).taken, false, "and nothing more");
    },
  ),

  ...forEachAlgorithm("a receipt is void once a credit has emptied its counter", async (algorithm, { store }) => {
    const limit = compileTestLimit({ algorithm, windows: [testWindow(10, 60_000)] });
    const { receipt } = await store.take([resolvedLimit(limit, "u", 5)], { receipt: true });
    await store.charge([resolvedLimit(limit, "u", -5)]);
    expectEqual((await store.take([resolvedLimit(limit, "u", 10)])).taken, true, "all ten are there");
    expectEqual(await store.give(receipt!), false, "what it stands for was given back already");
    expectEqual((await store.take([resolvedLimit(limit, "u")])).taken, false, "nothing more is admitted");
  }),

  ...forEachAlgorithm(
    "a receipt and a credit together give back no more than was taken",
    async (algorithm, { store }) => {
      const limit = compileTestLimit({ algorithm, windows: [testWindow(10, 60_000)] });
      const { receipt } = await store.take([resolvedLimit(limit, "u", 5)], { receipt: true });
      await store.take([resolvedLimit(limit, "u", 5)]);
      await store.charge([resolvedLimit(limit, "u", -2)]);
      await store.give(receipt!);
      const { remaining } = only(await store.peek([resolvedLimit(limit, "u")]));
      // A receipt for a stretch of time stands for as much less of it as was given back since.
      expectEqual(remaining, isBucket(algorithm) ? 5 : 7, "two by the credit, the rest by the receipt");
    },
  ),

  ...forEachAlgorithm("a credit is for limits in shadow mode too", async (algorithm, { store }) => {
    const enforced = compileTestLimit({ algorithm, windows: [testWindow(10, 60_000)], policy: "enforced" });
    const shadow = compileTestLimit({ algorithm, windows: [testWindow(10, 60_000)], policy: "shadow" });
    const asked = (cost: number): ResolvedLimit[] => [
      resolvedLimit(enforced, "u", cost),
      resolvedLimit(shadow, "u", cost, 1),
    ];
    await store.take(asked(6));
    await store.charge(asked(-2));
    expectEqual(
      (await store.peek(asked(1))).outcomes.map(({ remaining }) => remaining),
      [6, 6],
      "both were given back to",
    );
  }),

  ...forEachAlgorithm("a block denies for as long as it says, and a reset lifts it", async (algorithm, under) => {
    const { store, advance } = under;
    const windows = [testWindow(10, 1000), testWindow(100, 60_000)];
    const limit = compileTestLimit({ algorithm, windows, blockable: true });
    const asked = [resolvedLimit(limit, "u")];
    await store.block(asked, 5000);
    expectEqual(only(await store.peek(asked)).fits, "blocked", "seen by a preview");
    await advance(1000);
    const denied = await store.take(asked);
    expectEqual([denied.taken, only(denied).fits, only(denied).retryAfterMs], [false, "blocked", 4000], "in the way");
    expectEqual([only(denied).remaining, only(denied).windowRemaining > 0], [0, true], "although there is room");
    expectEqual((await store.take([resolvedLimit(limit, "other")])).taken, true, "others are not blocked");
    await store.block(asked, 2000);
    expectEqual(only(await store.take(asked)).retryAfterMs, 4000, "a shorter one does not shorten it");
    await store.block(asked, 4001);
    expectEqual(only(await store.take(asked)).retryAfterMs, 4001, "one that ends later puts it off");
    await store.charge([resolvedLimit(limit, "u", -100)]);
    expectEqual(only(await store.take(asked)).fits, "blocked", "credits do not touch it");
    await advance(4000);
    expectEqual(only(await store.take(asked)).retryAfterMs, 1, "to the millisecond");
    await advance(1);
    expectEqual((await store.take(asked)).taken, true, "then it is over");
    await store.block(asked, 30 * 24 * 3_600_000);
    expectEqual(only(await store.take(asked)).retryAfterMs, 30 * 24 * 3_600_000, "up to thirty days");
    await store.reset(asked);
    expectEqual((await store.take(asked)).taken, true, "a reset lifts it");
  }),

  ...forEachAlgorithm("a block is all of a request's, and charges nothing", async (algorithm, { store }) => {
    const open = compileTestLimit({ algorithm, windows: [testWindow(10, 60_000)], policy: "open" });
    const closed = compileTestLimit({
      algorithm,
      windows: [testWindow(10, 60_000)],
      policy: "closed",
      blockable: true,
    });
    const asked = [resolvedLimit(open, "u", 3), resolvedLimit(closed, "u", 3)];
    await store.block(asked, 60_000);
    const denied = await store.take(asked);
    expectEqual([denied.taken, ...denied.outcomes.map(answerFrom)], [false, "allowed", "blocked"], "one is enough");
    expectEqual(
      (await store.peek(asked)).outcomes.map(({ remaining }) => remaining),
      [10, 0],
      "nothing was taken, and nothing passes the one that is blocked",
    );
    expectEqual((await store.take([asked[0]!])).taken, true, "limits that are not blockable are not blocked");
  }),

  ...forEachAlgorithm("a block and block_for share one mark: the later end counts", async (algorithm, under) => {
    const { store, advance } = under;
    const limit = compileTestLimit({ algorithm, windows: [testWindow(1, 100)], blockForMs: 10_000 });
    const asked = [resolvedLimit(limit, "u")];
    await store.take(asked);
    await store.take(asked);
    await store.block(asked, 1000);
    expectEqual(only(await store.take(asked)).retryAfterMs, 10_000, "the denial's block is the longer one");
    await store.block(asked, 60_000);
    expectEqual(only(await store.take(asked)).retryAfterMs, 60_000, "longer than block_for");
    await advance(59_999);
    expectEqual(only(await store.take(asked)).fits, "blocked", "not cut short by block_for, nor renewed by denials");
    await advance(1);
    expectEqual((await store.take(asked)).taken, true, "over");
  }),

  ...forEachAlgorithm("a block in shadow mode keeps no subject out", async (algorithm, { store }) => {
    const enforced = compileTestLimit({ algorithm, windows: [testWindow(3, 60_000)], policy: "enforced" });
    const shadow = compileTestLimit({ algorithm, windows: [testWindow(9, 60_000)], policy: "shadow", blockable: true });
    const asked = [resolvedLimit(enforced, "u"), resolvedLimit(shadow, "u", 1, 1)];
    await store.block(asked, 60_000);
    const { taken, outcomes } = await store.take(asked);
    expectEqual([taken, ...outcomes.map(answerFrom)], [true, "allowed", "blocked"], "and is reported");
  }),

  ...forEachAlgorithm("an id is charged once", async (algorithm, { store, advance }) => {
    const limit = compileTestLimit({ algorithm, windows: [testWindow(5, 3_600_000)] });
    const asked = [resolvedLimit(limit, "u", 2)];
    const first = await store.take(asked, { id: "r1", fingerprint: "f" });
    expectEqual([first.taken, first.replayed], [true, false], "decided");
    await advance(1000);
    const second = await store.take(asked, { id: "r1", fingerprint: "f" });
    expectEqual([second.taken, second.replayed], [true, true], "given again");
    expectEqual(only(second).remaining, 3, "as it was decided");
    expectEqual(only(await store.peek(asked)).remaining, 3, "and charged once");
    let refused: unknown;
    try {
      await store.take(asked, { id: "r1", fingerprint: "another" });
    } catch (error) {
      refused = error;
    }
    expectEqual(
      refused instanceof SluiceError && refused.code,
      "idempotency_conflict",
      "an id is bound to its request",
    );
    await advance(600_000);
    expectEqual(
      (await store.take(asked, { id: "r1", fingerprint: "f" })).replayed,
      false,
      "remembered for ten minutes",
    );
  }),

  ...forEachAlgorithm("an id whose take was given back is decided afresh", async (algorithm, { store }) => {
    const limit = compileTestLimit({ algorithm, windows: [testWindow(5, 3_600_000)] });
    const asked = [resolvedLimit(limit, "u", 2)];
    const { receipt } = await store.take(asked, { id: "r1", fingerprint: "f", receipt: true });
    expectEqual(await store.give(receipt!), true, "given back");
    const again = await store.take(asked, { id: "r1", fingerprint: "f" });
    expectEqual([again.taken, again.replayed], [true, false], "what was given back is no longer taken");
    expectEqual(only(again).remaining, 3, "so it is charged");
  }),

  ...forEachAlgorithm("a denied id is decided afresh", async (algorithm, { store, advance }) => {
    const limit = compileTestLimit({ algorithm, windows: [testWindow(1, 1000)] });
    await store.take([resolvedLimit(limit, "u", 1)]);
    const denied = await store.take([resolvedLimit(limit, "u", 1)], { id: "r1", fingerprint: "f" });
    expectEqual(denied.taken, false, "used up");
    await advance(2000);
    const again = await store.take([resolvedLimit(limit, "u", 1)], { id: "r1", fingerprint: "f" });
    expectEqual([again.taken, again.replayed], [true, false], "a denial charged nothing and binds no id");
  }),

  ...forEachAlgorithm(
    "shadow limits are counted with what is allowed, and deny nothing",
    async (algorithm, { store }) => {
      const enforced = compileTestLimit({ algorithm, windows: [testWindow(3, 60_000)], policy: "enforced" });
      const shadow = compileTestLimit({ algorithm, windows: [testWindow(1, 60_000)], policy: "shadow" });
      const ask = (): TakeAnswer | Promise<TakeAnswer> =>
        store.take([resolvedLimit(enforced, "u"), resolvedLimit(shadow, "u", 1, 1)]);
      expectEqual((await ask()).outcomes.map(answerFrom), ["allowed", "allowed"], "both have room");
      const second = await ask();
      expectEqual(
        [second.taken, ...second.outcomes.map(answerFrom)],
        [true, "allowed", "denied"],
        "the shadow would deny",
      );
      expectEqual((await ask()).taken, true, "and the enforced limit still counts on");
      const fourth = await ask();
      expectEqual(
        [fourth.taken, ...fourth.outcomes.map(answerFrom)],
        [false, "denied", "denied"],
        "until it denies itself",
      );
    },
  ),

  ...forEachAlgorithm(
    "block_for keeps a subject out after a denial, and is not renewed by more",
    async (algorithm, { store, advance }) => {
      const limit = compileTestLimit({ algorithm, windows: [testWindow(1, 100)], blockForMs: 10_000 });
      await store.take([resolvedLimit(limit, "u")]);
      const denied = await store.take([resolvedLimit(limit, "u")]);
      expectEqual(only(denied).retryAfterMs, 10_000, "the block is longer than the window's wait");
      await advance(50);
      const again = only(await store.take([resolvedLimit(limit, "u")]));
      expectEqual([again.fits, again.retryAfterMs], ["blocked", 9950], "another denial does not renew it");
      await advance(8950);
      const blocked = only(await store.take([resolvedLimit(limit, "u")]));
      expectEqual([blocked.fits, blocked.retryAfterMs], ["blocked", 1000], "still blocked, and not for longer");
      expectEqual((await store.take([resolvedLimit(limit, "other")])).taken, true, "others are not");
      await advance(1000);
      expectEqual((await store.take([resolvedLimit(limit, "u")])).taken, true, "then it is over");
    },
  ),

  ...forEachAlgorithm("block_for is not begun by a cost that never fits", async (algorithm, { store }) => {
    const limit = compileTestLimit({ algorithm, windows: [testWindow(2, 1000)], blockForMs: 10_000 });
    expectEqual(only(await store.take([resolvedLimit(limit, "u", 3)])).fits, "never", "more than the window holds");
    expectEqual((await store.take([resolvedLimit(limit, "u", 1)])).taken, true, "which is not an error");
  }),

  ...forEachAlgorithm(
    "counters are kept apart while thousands come and the store makes room",
    async (algorithm, { store }) => {
      const shared = compileTestLimit({ algorithm, windows: [testWindow(100_000, 3_600_000)], policy: "shared" });
      const own = compileTestLimit({ algorithm, windows: [testWindow(2, 3_600_000)], policy: "own" });
      const together = 50;
      for (let first = 1; first <= 3000; first += together) {
        const numbers = Array.from({ length: together }, (_, i) => first + i);
        // The new counter comes first, so that placing it moves what was already found of the shared one.
        const answers = await Promise.all(
          numbers.map((i) => store.take([resolvedLimit(own, `u${i}`), resolvedLimit(shared, "all")])),
        );
        const left = answers.map(({ outcomes }) => outcomes.map((outcome) => outcome.remaining).join(" of "));
        expectEqual(
          left.sort().reverse(),
          numbers.map((i) => `1 of ${100_000 - i}`),
          `from ${first} on`,
        );
      }
      for (let i = 1; i <= 3000; i += 97) {
        expectEqual(only(await store.peek([resolvedLimit(own, `u${i}`)])).remaining, 1, `u${i} was charged once`);
      }
    },
  ),

  ...forEachAlgorithm(
    "a lowered limit keeps the counter and locks no subject out",
    async (algorithm, { store, advance }) => {
      const before = compileTestLimit({ algorithm, windows: [testWindow(1000, 60_000)] });
      const after = compileTestLimit({ algorithm, windows: [testWindow(10, 60_000)] });
      expectEqual((await store.take([resolvedLimit(before, "u", 1000)])).taken, true, "all of the old limit");
      const denied = only(await store.take([resolvedLimit(after, "u")]));
      expectEqual(denied.fits, "later", "the running counter counts under the new limit");
      expectEqual(denied.retryAfterMs <= 120_000, true, "and is free again within two windows");
      await advance(denied.retryAfterMs);
      expectEqual((await store.take([resolvedLimit(after, "u")])).taken, true, "the reported wait is the wait");
    },
  ),

  ...forEachAlgorithm(
    "more than a lowered burst allows is just used up",
    async (algorithm, { store }) => {
      const before = compileTestLimit({ algorithm, windows: [testWindow(10, 60_000, 1000)] });
      const after = compileTestLimit({ algorithm, windows: [testWindow(10, 60_000)] });
      expectEqual((await store.take([resolvedLimit(before, "u", 1000)])).taken, true, "all of the old limit");
      expectEqual(only(await store.peek([resolvedLimit(after, "u")])).resetAfterMs, 60_000, "peeked");
      expectEqual(only(await store.take([resolvedLimit(after, "u")])).resetAfterMs, 60_000, "one more");
    },
    algorithms.filter(isBucket),
  ),

  ...forEachAlgorithm("a raised limit keeps the counter", async (algorithm, { store }) => {
    const before = compileTestLimit({ algorithm, windows: [testWindow(10, 60_000)] });
    const after = compileTestLimit({ algorithm, windows: [testWindow(1000, 60_000)] });
    expectEqual((await store.take([resolvedLimit(before, "u", 10)])).taken, true, "all of the old limit");
    expectEqual((await store.take([resolvedLimit(before, "u")])).taken, false, "used up");
    const answer = await store.take([resolvedLimit(after, "u")]);
    if (isBucket(algorithm))
      expectEqual(only(answer).retryAfterMs, 60, "a full bucket stays full, and drains at the new rate");
    else expectEqual(answer.taken, true, "ten of a thousand are used");
  }),

  ...forEachAlgorithm("hostile subjects are subjects like any other", async (algorithm, { store }) => {
    const limit = compileTestLimit({ algorithm, windows: [testWindow(1, 60_000)] });
    const hostile = [
      "\0",
      "\u{d800}",
      "__proto__",
      "constructor",
      "{tag}",
      "a\r\nb",
      "*",
      " ",
      "é",
      "e\u0301",
      "x".repeat(4096),
      "x".repeat(4095),
    ];
    for (const subject of hostile) {
      expectEqual(
        (await store.take([resolvedLimit(limit, subject)])).taken,
        true,
        `first for ${JSON.stringify(subject.slice(0, 20))}`,
      );
    }
    for (const subject of hostile) {
      expectEqual(
        (await store.take([resolvedLimit(limit, subject)])).taken,
        false,
        `second for ${JSON.stringify(subject.slice(0, 20))}`,
      );
    }
  }),

  ...forEachAlgorithm(
    "a policy with count_denials counts denials in a row, until the next allowance or a reset",
    async (algorithm, { store, advance }) => {
      const limit = compileTestLimit({ algorithm, windows: [testWindow(3, 1000)], countDenials: true });
      const ask = async (cost: number): Promise<number | undefined> =>
        (await store.take([resolvedLimit(limit, "u", cost)])).records?.[0]?.denied;
      expectEqual(await ask(3), 0, "allowed");
      expectEqual([await ask(2), await ask(1)], [2, 3], "each denial adds its cost");
      expectEqual(await ask(5), 8, "even a cost that never fits");
      const peeked = await store.peek([resolvedLimit(limit, "u", 1)]);
      expectEqual([peeked.records?.[0]?.denied, peeked.records?.[0]?.windows], [8, []], "a peek adds nothing");
      const other = await store.take([resolvedLimit(limit, "other")]);
      expectEqual(other.records?.[0]?.denied, 0, "others are not concerned");
      await advance(2000);
      expectEqual(await ask(3), 0, "an allowance begins anew");
      expectEqual(await ask(1), 1, "and counting continues");
      await store.reset([resolvedLimit(limit, "u")]);
      expectEqual((await store.peek([resolvedLimit(limit, "u")])).records?.[0]?.denied, 0, "a reset forgets it");
    },
  ),

  ...forEachAlgorithm(
    "denials by a block count in a row, even when its windows are idle",
    async (algorithm, { store, advance }) => {
      const limit = compileTestLimit({
        algorithm,
        windows: [testWindow(1, 1000)],
        countDenials: true,
        blockForMs: 60_000,
      });
      const ask = async (): Promise<number | undefined> =>
        (await store.take([resolvedLimit(limit, "u")])).records?.[0]?.denied;
      expectEqual([await ask(), await ask()], [0, 1], "the second is denied, and begins a block");
      await advance(4000);
      expectEqual(await ask(), 2, "the block denies as well");
    },
  ),

  {
    name: "a denial counts for the limits that deny, and not for the others",
    async run(open) {
      const { store } = await open();
      const compile = (policy: string, limit: number, countDenials: boolean): CompiledLimit =>
        compileTestLimit({ algorithm: "gcra", windows: [testWindow(limit, 60_000)], policy, countDenials });
      const [wide, narrow, plain] = [
        compile("wide", 100, true),
        compile("narrow", 2, true),
        compile("plain", 100, false),
      ];
      const ask = async (group = 0): Promise<(number | undefined)[]> => {
        const limits = [resolvedLimit(plain, "u"), resolvedLimit(wide, "u"), resolvedLimit(narrow, "u", 1, group)];
        return (await store.take(limits)).records!.map((record) => record?.denied);
      };
      const none = undefined as unknown as null;
      expectEqual(
        [await ask(), await ask()],
        [
          [none, 0, 0],
          [none, 0, 0],
        ],
        "both are allowed",
      );
      expectEqual(
        [await ask(), await ask()],
        [
          [none, 0, 1],
          [none, 0, 2],
        ],
        "only the narrow one denies",
      );
      expectEqual(await ask(1), [none, 0, 3], "in shadow mode it counts too");
      await store.close();
    },
  },

  ...forEachAlgorithm(
    "a record has every window as it is after the take, and when that was",
    async (algorithm, under) => {
      const { store, advance } = under;
      const windows = [testWindow(10, 1000), testWindow(100, 60_000)];
      const limit = compileTestLimit({ algorithm, windows });
      const asked = (cost: number): ResolvedLimit[] => [resolvedLimit(limit, "u", cost)];
      const fresh = await store.peek(asked(1), { record: true });
      expectEqual(fresh.records?.[0]?.updatedMs, undefined, "nothing was decided by it yet");
      const first = await store.take(asked(4), { record: true });
      const left = (answer: TakeAnswer): number[] | undefined =>
        answer.records?.[0]?.windows.map(({ remaining }) => remaining);
      expectEqual(left(first), [6, 96], "after the take");
      expectEqual(first.records?.[0]?.updatedMs, first.atMs, "at the moment it was decided");
      await advance(100);
      const denied = await store.take(asked(9), { record: true });
      expectEqual([denied.taken, denied.records?.[0]?.denied], [false, 9], "the short window denies");
      expectEqual(denied.records?.[0]?.updatedMs, denied.atMs, "which is recorded as well");
      const peeked = await store.peek(asked(1), { record: true });
      expectEqual([left(peeked), peeked.records?.[0]?.denied], [left(denied), 9], "as a peek finds it");
      expectEqual(peeked.records?.[0]?.updatedMs, denied.atMs, "a peek is not an update");
      const reading = (await store.read(resolvedLimit(limit, "u"))).map(({ state }) => state);
      expectEqual(
        peeked.records?.[0]?.windows.map(({ state }) => state),
        reading,
        "the same quantities as read has",
      );
      expectEqual((await store.take(asked(1))).records, undefined, "no record is returned unless one is asked for");
    },
  ),

  ...forEachAlgorithm("read returns how a counter stands", async (algorithm, { store }) => {
    const limit = compileTestLimit({ algorithm, windows: [testWindow(5, 60_000)] });
    await store.take([resolvedLimit(limit, "u", 2)]);
    const [reading] = await store.read(resolvedLimit(limit, "u"));
    expectEqual(reading?.remaining, 3, "two of five are used");
    const [fresh] = await store.read(resolvedLimit(limit, "nobody"));
    expectEqual([fresh?.remaining, fresh?.resetAfterMs], [5, 0], "an unknown subject is as good as new");
  }),
];

function isBucket(algorithm: Algorithm): boolean {
  return algorithm === "gcra" || algorithm === "token_bucket" || algorithm === "leaky_bucket";
}
