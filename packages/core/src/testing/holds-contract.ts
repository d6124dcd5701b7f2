import type { HoldAnswer, ResolvedLimit, TakeAnswer, TakeOptions } from "../counters/counter-store.ts";
import type { SluiceError } from "../errors.ts";
import {
  type ContractCase,
  expectEqual,
  forEachAlgorithm,
  only,
  type StoreUnderTest,
} from "./counter-store-contract.ts";
import { compileTestLimit, resolvedLimit, testWindow } from "./test-limit.ts";

const holdMs = 5000;

async function hold(
  { store }: StoreUnderTest,
  limits: readonly ResolvedLimit[],
  options: TakeOptions = {},
): Promise<TakeAnswer> {
  return store.take(limits, { receipt: true, holdMs, ...options });
}

async function commit({ store }: StoreUnderTest, id: string | undefined, actual: number, last = true) {
  return store.holds!.commit(id!, actual, last);
}

async function remaining({ store }: StoreUnderTest, limit: ResolvedLimit): Promise<number> {
  return only(await store.peek([{ ...limit, cost: 1 }])).remaining;
}

function expectState(answer: HoldAnswer, expected: Partial<HoldAnswer>, because: string): void {
  const wanted = Object.entries(expected);
  const got = wanted.map(([name]) => [name, answer[name as keyof HoldAnswer]]);
  expectEqual(got, wanted, because);
}

/** The promises of `HoldStore`, for every store that keeps holds, on top of `counterStoreContract`. */
export const holdsContract: readonly ContractCase[] = [
  ...forEachAlgorithm("a hold is part of the counter, for all who look", async (algorithm, under) => {
    const limit = compileTestLimit({ algorithm, windows: [testWindow(10, 60_000)] });
    const { taken, receipt } = await hold(under, [resolvedLimit(limit, "u", 7)]);
    expectEqual([taken, typeof receipt], [true, "string"], "there is room, and it can be settled");
    expectEqual(await remaining(under, resolvedLimit(limit, "u")), 3, "a preview counts it");
    expectEqual((await under.store.read(resolvedLimit(limit, "u")))[0]!.remaining, 3, "so does who reads it");
    expectEqual((await under.store.take([resolvedLimit(limit, "u", 4)])).taken, false, "and a check");
    expectEqual((await hold(under, [resolvedLimit(limit, "u", 4)])).receipt, undefined, "and another hold");
  }),

  ...forEachAlgorithm("what was not used is given back at once", async (algorithm, under) => {
    const limit = compileTestLimit({ algorithm, windows: [testWindow(10, 60_000), testWindow(100, 3_600_000)] });
    const { receipt } = await hold(under, [resolvedLimit(limit, "u", 8)]);
    const answer = await commit(under, receipt, 3);
    expectState(answer, { state: "settled", amount: 8, actual: 3, overdraft: 0, expired: false }, "settled");
    expectEqual(await remaining(under, resolvedLimit(limit, "u")), 7, "three were used");
    expectEqual(
      (await under.store.read(resolvedLimit(limit, "u"))).map((one) => one.remaining),
      [7, 97],
      "of every window",
    );
    expectEqual((await under.store.take([resolvedLimit(limit, "u", 7)])).taken, true, "seven are there");
    expectEqual((await under.store.take([resolvedLimit(limit, "u", 1)])).taken, false, "and no more");
  }),

  ...forEachAlgorithm("what was used beyond the amount is charged, as bounded debt", async (algorithm, under) => {
    const limit = compileTestLimit({ algorithm, windows: [testWindow(10, 1000)] });
    const asked = resolvedLimit(limit, "u", 4);
    const { receipt } = await hold(under, [asked]);
    const partly = await commit(under, receipt, 6, false);
    expectState(partly, { state: "held", overdraft: 2 }, "charged before it is settled");
    expectEqual(await remaining(under, asked), 4, "six are used");
    const answer = await commit(under, receipt, 100_000);
    expectState(answer, { state: "settled", actual: 100_000, overdraft: 99_996 }, "it says so");
    const denied = only(await under.store.take([resolvedLimit(limit, "u")]));
    expectEqual(denied.fits, "later", "it is owed");
    await under.advance(2000);
    expectEqual((await under.store.take([resolvedLimit(limit, "u")])).taken, true, "for two windows at most");
  }),

  ...forEachAlgorithm(
    "a repeated commit gets the first answer, and changes nothing",
    async (algorithm, under) => {
      const limit = compileTestLimit({ algorithm, windows: [testWindow(10, 3_600_000)] });
      const asked = resolvedLimit(limit, "u", 6);
      const { receipt } = await hold(under, [asked]);
      const first = await commit(under, receipt, 2);
      await under.advance(599_000);
      for (const [actual, last] of [
        [2, true],
        [9, true],
        [0, true],
        [5, false],
      ] as const)
        expectEqual(await commit(under, receipt, actual, last), { ...first, replayed: true }, `${actual} again`);
      expectEqual(await remaining(under, asked), 8, "two were used");
      expectState(await under.store.holds!.extend(receipt!, 1000), { state: "settled", replayed: true }, "it stays so");
      await under.advance(2000);
      expectState(await commit(under, receipt, 2), { state: "unknown" }, "after ten minutes it is forgotten");
      expectEqual(await remaining(under, asked), 8, "and nothing was charged");
    },
    ["fixed_window", "sliding_window", "sliding_log"],
  ),

  ...forEachAlgorithm("reports add up to the latest, whatever is repeated or lost", async (algorithm, under) => {
    const limit = compileTestLimit({ algorithm, windows: [testWindow(10, 60_000)] });
    const asked = resolvedLimit(limit, "u", 6);
    const { receipt } = await hold(under, [asked]);
    for (const actual of [1, 3, 3, 2]) {
      expectState(await commit(under, receipt, actual, false), { state: "held", overdraft: 0 }, "paid by the hold");
      expectEqual(await remaining(under, asked), 4, "which is charged already");
    }
    const answer = await under.store.holds!.commit(receipt!, 0, true);
    expectState(answer, { state: "settled", actual: 3 }, "a cancel keeps what was reported");
    expectEqual(await remaining(under, asked), 7, "and gives back the rest");
  }),

  ...forEachAlgorithm("a hold that is not settled expires, and is given back", async (algorithm, under) => {
    const limit = compileTestLimit({ algorithm, windows: [testWindow(10, 3_600_000)] });
    const asked = resolvedLimit(limit, "u", 8);
    const first = await hold(under, [asked]);
    await commit(under, first.receipt, 3, false);
    await under.advance(holdMs - 1);
    expectEqual(await remaining(under, asked), 2, "it is held until then");
    await under.advance(1);
    expectEqual(await remaining(under, asked), 7, "then what was not reported is there again");
    expectState(await under.store.holds!.extend(first.receipt!, 9000), { state: "expired", expired: true }, "too late");
    expectEqual(await remaining(under, asked), 7, "it is not held again");
  }),

  ...forEachAlgorithm("a late commit charges what expiry gave back", async (algorithm, under) => {
    const limit = compileTestLimit({ algorithm, windows: [testWindow(10, 3_600_000)] });
    const asked = resolvedLimit(limit, "u", 6);
    const { receipt } = await hold(under, [asked]);
    await under.advance(holdMs);
    expectEqual(await remaining(under, asked), 10, "all of it was");
    const late = await commit(under, receipt, 4);
    expectState(late, { state: "settled", expired: true, actual: 4, overdraft: 0 }, "it says so");
    expectEqual(await remaining(under, asked), 6, "neither lost nor doubled");
    expectState(await commit(under, receipt, 4), { expired: true, replayed: true }, "once");
    expectEqual(await remaining(under, asked), 6, "whatever is repeated");
  }),

  ...forEachAlgorithm(
    "a late commit does not charge again what expiry could not give back",
    async (algorithm, under) => {
      const limit = compileTestLimit({ algorithm, windows: [testWindow(4, 1000)] });
      const asked = resolvedLimit(limit, "u", 4);
      const { receipt } = await hold(under, [asked]);
      await under.advance(holdMs);
      await commit(under, receipt, 4);
      expectEqual(await remaining(under, asked), 4, "it was paid in its time");
    },
  ),

  {
    name: "of a part that has drained when a hold expires, a late commit charges less than one unit too much",
    async run(open) {
      const under = await open();
      const limit = compileTestLimit({ algorithm: "gcra", windows: [testWindow(10, 10_000)] });
      const { receipt } = await hold(under, [resolvedLimit(limit, "u", 6)], { holdMs: 2500 });
      await under.advance(2500);
      expectEqual(await remaining(under, resolvedLimit(limit, "u")), 10, "two and a half have drained");
      await commit(under, receipt, 6);
      expectEqual(await remaining(under, resolvedLimit(limit, "u")), 6, "so four are charged, not three and a half");
      await under.store.close();
    },
  },

  ...forEachAlgorithm("an extended hold lasts longer, and never shorter", async (algorithm, under) => {
    const limit = compileTestLimit({ algorithm, windows: [testWindow(10, 3_600_000)] });
    const asked = resolvedLimit(limit, "u", 6);
    const { receipt, atMs } = await hold(under, [asked]);
    await under.advance(4000);
    const extended = await under.store.holds!.extend(receipt!, 8000);
    expectState(extended, { state: "held", expiresAtMs: Math.round(atMs) + 12_000 }, "from now");
    expectState(await under.store.holds!.extend(receipt!, 10), { expiresAtMs: extended.expiresAtMs }, "never shorter");
    await under.advance(7999);
    expectEqual(await remaining(under, asked), 4, "still held");
    await under.advance(1);
    expectEqual(await remaining(under, asked), 10, "then it ends");
  }),

  ...forEachAlgorithm("all limits of a hold are charged and settled, or none", async (algorithm, under) => {
    const wide = compileTestLimit({ algorithm, windows: [testWindow(10, 60_000)], policy: "wide" });
    const narrow = compileTestLimit({ algorithm, windows: [testWindow(5, 60_000)], policy: "narrow" });
    const shadow = compileTestLimit({ algorithm, windows: [testWindow(3, 60_000)], policy: "shadow" });
    const both = (cost: number, group = 0) => [resolvedLimit(wide, "t", cost), resolvedLimit(narrow, "u", cost, group)];
    expectEqual((await hold(under, both(6))).receipt, undefined, "the narrow one has no room");
    expectEqual(await remaining(under, both(1)[0]!), 10, "so nothing is held in the wide one");
    const { receipt } = await hold(under, [...both(4), resolvedLimit(shadow, "s", 4, 1)]);
    await commit(under, receipt, 1);
    expectEqual([await remaining(under, both(1)[0]!), await remaining(under, both(1)[1]!)], [9, 4], "both are settled");
    expectEqual(await remaining(under, resolvedLimit(shadow, "s")), 3, "and what shadow did not admit was not charged");
  }),

  ...forEachAlgorithm("a hold settles the right counters after its policy changed", async (algorithm, under) => {
    const windows = [testWindow(10, 60_000)];
    const before = compileTestLimit({ algorithm, windows, name: "tokens" });
    const after = compileTestLimit({ algorithm, windows: [testWindow(20, 60_000)], name: "tokens" });
    const gone = compileTestLimit({ algorithm, windows, name: "gone" });
    const { receipt } = await hold(under, [resolvedLimit(before, "u", 8), resolvedLimit(gone, "u", 8)]);
    await under.store.take([resolvedLimit(after, "u", 1)]);
    await commit(under, receipt, 2);
    expectEqual(await remaining(under, resolvedLimit(gone, "u")), 8, "a limit that is gone from the policy");
    const left = await remaining(under, resolvedLimit(after, "u"));
    const bucket = algorithm === "gcra" || algorithm === "token_bucket" || algorithm === "leaky_bucket";
    // A bucket holds time: two of ten in a minute are worth four of twenty.
    expectEqual(left, bucket ? 15 : 17, "a limit that was raised");
  }),

  ...forEachAlgorithm("a reset forgives what was held", async (algorithm, under) => {
    const limit = compileTestLimit({ algorithm, windows: [testWindow(10, 60_000)] });
    const asked = resolvedLimit(limit, "u", 6);
    const { receipt } = await hold(under, [asked]);
    await under.store.reset([asked]);
    await under.store.take([resolvedLimit(limit, "u", 9)]);
    await commit(under, receipt, 1);
    expectEqual(await remaining(under, asked), 1, "nothing is given back twice");
    const other = await hold(under, [resolvedLimit(limit, "u", 1)]);
    await under.store.reset([asked]);
    await commit(under, other.receipt, 3);
    expectEqual(await remaining(under, asked), 8, "what exceeds the amount is charged");
  }),

  ...forEachAlgorithm(
    "the same request id is held once",
    async (algorithm, under) => {
      const limit = compileTestLimit({ algorithm, windows: [testWindow(10, 3_600_000)] });
      const asked = resolvedLimit(limit, "u", 6);
      const named = { id: "chat-1", fingerprint: "six" };
      const first = await hold(under, [asked], named);
      const again = await hold(under, [asked], named);
      expectEqual([again.replayed, again.receipt], [true, first.receipt], "the first answer");
      expectEqual(await remaining(under, asked), 4, "charged once");
      await commit(under, first.receipt, 1);
      const late = await hold(under, [asked], named);
      expectEqual([late.replayed, late.receipt], [true, first.receipt], "after it was settled, too");
      expectState(await commit(under, late.receipt, 1), { state: "settled", replayed: true }, "which it remains");
      expectEqual(await remaining(under, asked), 9, "nothing is held for it again");
      await hold(under, [resolvedLimit(limit, "u", 2)], { id: "chat-1", fingerprint: "two" }).then(
        () => expectEqual("accepted", "refused", "another request"),
        (error: unknown) => expectEqual((error as SluiceError).code, "idempotency_conflict", "another request"),
      );
    },
    ["gcra", "fixed_window"],
  ),

  {
    name: "holds that are not known are said to be so, and change nothing",
    async run(open) {
      const under = await open();
      const limit = compileTestLimit({ algorithm: "gcra", windows: [testWindow(10, 60_000)] });
      const { receipt } = await under.store.take([resolvedLimit(limit, "u", 5)], { receipt: true });
      for (const id of ["", "nothing", "h1.x", receipt!, `${receipt!}x`, "r0.0.x", "h0.0.x+h0.999.y"]) {
        expectState(await commit(under, id, 5), { state: "unknown", replayed: false }, id);
        expectState(await under.store.holds!.extend(id, 5), { state: "unknown" }, id);
      }
      expectEqual(await remaining(under, resolvedLimit(limit, "u")), 5, "nothing was given back");
      const held = await hold(under, [resolvedLimit(limit, "u", 5)]);
      expectEqual(await under.store.give(held.receipt!), false, "a hold is no receipt");
      await under.store.close();
    },
  },

  ...forEachAlgorithm("holds made at once never exceed the limit together", async (algorithm, under) => {
    const limit = compileTestLimit({ algorithm, windows: [testWindow(10, 60_000)] });
    const answers = await Promise.all(Array.from({ length: 20 }, () => hold(under, [resolvedLimit(limit, "u", 3)])));
    const receipts = answers.flatMap(({ receipt }) => receipt ?? []);
    expectEqual(receipts.length, 3, "three threes fit");
    await Promise.all(receipts.map((receipt) => commit(under, receipt, 1)));
    expectEqual(await remaining(under, resolvedLimit(limit, "u")), 7, "all are settled");
  }),

  ...forEachAlgorithm("holds of one subject are settled in any order, without loss", async (algorithm, under) => {
    const limit = compileTestLimit({ algorithm, windows: [testWindow(30, 3_600_000)] });
    for (const order of [
      [0, 1, 2],
      [2, 1, 0],
      [1, 2, 0],
    ]) {
      const asked = resolvedLimit(limit, order.join(), 10);
      const answers = [await hold(under, [asked]), await hold(under, [asked]), await hold(under, [asked])];
      for (const i of order) await commit(under, answers[i]!.receipt, 1);
      expectEqual(await remaining(under, asked), 27, `in the order ${order.join()}`);
    }
  }),

  ...[0, 1].map(
    (early): ContractCase => ({
      name: `of two holds in a bucket, what is given back of the ${early === 0 ? "first moves up" : "second leaves"} the other`,
      async run(open) {
        const under = await open();
        const limit = compileTestLimit({ algorithm: "gcra", windows: [testWindow(10, 10_000)] });
        const half = resolvedLimit(limit, "u", 5);
        const answers = [await hold(under, [half], { holdMs: 60_000 }), await hold(under, [half], { holdMs: 60_000 })];
        await commit(under, answers[early]!.receipt, 0);
        await under.advance(4900);
        expectEqual(
          (await under.store.take([resolvedLimit(limit, "u", 9)])).taken,
          true,
          "time has paid for the other",
        );
        await commit(under, answers[1 - early]!.receipt, 0);
        expectEqual(await remaining(under, half), 1, "so a tenth of a second is all it gives back");
        await under.store.close();
      },
    }),
  ),
];
