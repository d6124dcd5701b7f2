import { exactValues } from "../algorithms/distinct-values.ts";
import type { LimitOutcome, ResolvedLimit, TakeAnswer } from "../counters/counter-store.ts";
import type { CompiledLimit } from "../limits/compiled-limit.ts";
import type { Window } from "../policy/policy.ts";
import { type ContractCase, expectEqual, only, type StoreUnderTest } from "./counter-store-contract.ts";
import { compileTestLimit, resolvedLimit, type TestLimit, testWindow } from "./test-limit.ts";

const hourMs = 3_600_000;

/** A limit on the distinct users of a tenant. */
function distinctLimit(windows: readonly Window[], more: Partial<TestLimit> = {}): CompiledLimit {
  return compileTestLimit({ algorithm: "fixed_window", windows, by: ["tenant"], distinct: "user", ...more });
}

function asked(limit: CompiledLimit, value: string, cost = 1): ResolvedLimit {
  return { ...resolvedLimit(limit, "acme", cost), value };
}

/** How a step is answered, in short: what is left after it if it was taken, else as it stands; and when to retry. */
function shown({ fits, remaining, retryAfterMs }: LimitOutcome): readonly unknown[] {
  return fits === "now" ? ["allowed", remaining] : ["denied", remaining, retryAfterMs];
}

async function take({ store }: StoreUnderTest, limits: readonly ResolvedLimit[]): Promise<TakeAnswer> {
  return store.take(limits);
}

interface DistinctStep {
  readonly at: number;
  readonly value: string;
  readonly cost?: number;
  readonly answer:
    | readonly ["allowed", remaining: number]
    | readonly ["denied", remaining: number, retryAfterMs: number];
  readonly because: string;
}

/** Begins at 22:00:00.000 UTC, as the other conversations do. */
const steps: readonly DistinctStep[] = [
  { at: 0, value: "ada", answer: ["allowed", 2], because: "the first of three values" },
  { at: 1, value: "ada", answer: ["allowed", 2], because: "seen before: free" },
  { at: 2, value: "bob", cost: 100, answer: ["allowed", 1], because: "one value, whatever it costs" },
  { at: 3, value: "", answer: ["allowed", 0], because: "no value is a value too" },
  { at: 4, value: "eve", answer: ["denied", 0, hourMs - 4], because: "a fourth waits for the end of the window" },
  { at: 5, value: "eve", answer: ["denied", 0, hourMs - 5], because: "a denied value was not noted" },
  { at: 6, value: "bob", answer: ["allowed", 0], because: "the others still pass" },
  { at: hourMs - 1, value: "eve", answer: ["denied", 0, 1], because: "one millisecond before the end" },
  { at: hourMs, value: "eve", answer: ["allowed", 2], because: "a new window has seen nothing" },
  { at: hourMs, value: "ada", answer: ["allowed", 1], because: "not even ada" },
  { at: 3 * hourMs, value: "Ada", answer: ["allowed", 2], because: "windows in between saw nothing" },
  { at: 3 * hourMs, value: "ada", answer: ["allowed", 1], because: "values are compared as they are" },
  { at: 3 * hourMs, value: "äda", answer: ["allowed", 0], because: "in any script" },
  { at: 3 * hourMs, value: "a\ud800", answer: ["denied", 0, hourMs], because: "even if they are not valid Unicode" },
];

/** The promises of stores with `distinct`, on top of `counterStoreContract`. */
export const distinctContract: readonly ContractCase[] = [
  {
    name: "conversation: three distinct values an hour",
    async run(open) {
      const under = await open();
      const limit = distinctLimit([testWindow(3, hourMs)]);
      let at = 0;
      for (const step of steps) {
        await under.advance(step.at - at);
        at = step.at;
        const why = `at ${at} ms, ${JSON.stringify(step.value)}: ${step.because}`;
        const one = [asked(limit, step.value, step.cost)];
        expectEqual(only(await under.store.peek(one)).fits === "now", step.answer[0] === "allowed", `peek, ${why}`);
        expectEqual(shown(only(await take(under, one))), step.answer, why);
      }
    },
  },
  {
    name: "a preview of a new value notes nothing",
    async run(open) {
      const under = await open();
      const limit = distinctLimit([testWindow(1, hourMs)]);
      for (const value of ["a", "b", "c"])
        expectEqual(only(await under.store.peek([asked(limit, value)])).remaining, 1, "nothing was noted");
      expectEqual((await take(under, [asked(limit, "d")])).taken, true, "there is room for one");
    },
  },
  {
    name: "a value is noted only if every limit of the request has room",
    async run(open) {
      const under = await open();
      const distinct = distinctLimit([testWindow(5, hourMs)]);
      const rate = compileTestLimit({ algorithm: "gcra", windows: [testWindow(2, hourMs)], by: ["tenant"] });
      const both = (value: string) => [asked(distinct, value), resolvedLimit(rate, "acme")];
      expectEqual((await take(under, both("a"))).taken, true, "both have room");
      expectEqual((await take(under, both("b"))).taken, true, "both have room");
      expectEqual((await take(under, both("c"))).taken, false, "the rate has none");
      expectEqual(only(await under.store.peek([asked(distinct, "x")])).remaining, 3, "c was not noted");
      const full = distinctLimit([testWindow(1, hourMs)], { name: "one" });
      const other = compileTestLimit({
        algorithm: "gcra",
        windows: [testWindow(9, hourMs)],
        by: ["tenant"],
        name: "r",
      });
      const mixed = (value: string) => [asked(full, value), resolvedLimit(other, "acme")];
      await take(under, mixed("a"));
      expectEqual((await take(under, mixed("b"))).taken, false, "no room for a second value");
      expectEqual((await take(under, mixed("a"))).taken, true, "room for the first");
      expectEqual(only(await under.store.peek([resolvedLimit(other, "acme")])).remaining, 7, "two were charged");
    },
  },
  {
    name: "every window of a limit sees the value",
    async run(open) {
      const under = await open();
      const limit = distinctLimit([testWindow(2, 60_000), testWindow(3, hourMs)]);
      for (const [value, answer] of [
        ["a", ["allowed", 1]],
        ["b", ["allowed", 0]],
        ["c", ["denied", 0, 60_000]],
      ] as const)
        expectEqual(shown(only(await take(under, [asked(limit, value)]))), answer, `${value} in the first minute`);
      await under.advance(60_000);
      for (const [value, answer] of [
        ["a", ["allowed", 1]],
        ["c", ["allowed", 0]],
        ["d", ["denied", 0, hourMs - 60_000]],
      ] as const)
        expectEqual(shown(only(await take(under, [asked(limit, value)]))), answer, `${value} in the second minute`);
    },
  },
  {
    name: "what was noted stays: a receipt gives back the rest of the request",
    async run(open) {
      const under = await open();
      const distinct = distinctLimit([testWindow(2, hourMs)]);
      const rate = compileTestLimit({ algorithm: "fixed_window", windows: [testWindow(10, hourMs)], by: ["tenant"] });
      const both = [asked(distinct, "a", 4), resolvedLimit(rate, "acme", 4)];
      const { receipt } = await under.store.take(both, { receipt: true, id: "r1", fingerprint: "f" });
      expectEqual(await under.store.give(receipt!), true, "the rate gives back");
      const after = await under.store.peek([asked(distinct, "b"), resolvedLimit(rate, "acme")]);
      expectEqual(
        after.outcomes.map((one) => one.remaining),
        [1, 10],
        "the value stays",
      );
      const alone = await under.store.take([asked(distinct, "b")], { receipt: true });
      expectEqual([alone.taken, alone.receipt], [true, undefined], "there is no receipt for a value alone");
      await under.store.charge([asked(distinct, "b", -5)]);
      expectEqual(only(await under.store.peek([asked(distinct, "c")])).fits, "later", "and no credit");
    },
  },
  {
    name: "a charge notes a value beyond the limit, and a seen one is free",
    async run(open) {
      const under = await open();
      const limit = distinctLimit([testWindow(2, hourMs)]);
      for (const value of ["a", "b", "c", "c"]) await under.store.charge([asked(limit, value, 7)]);
      expectEqual(shown(only(await take(under, [asked(limit, "d")]))), ["denied", 0, hourMs], "more than full");
      expectEqual(shown(only(await take(under, [asked(limit, "c")]))), ["allowed", 0], "it was noted");
      expectEqual((await under.store.read(asked(limit, "")))[0]!.state, { values: 3 }, "three were seen");
    },
  },
  {
    name: "the same request id notes its value once, and another value is another request",
    async run(open) {
      const under = await open();
      const limit = distinctLimit([testWindow(2, hourMs)]);
      const options = { id: "r1", fingerprint: "f" };
      const first = await under.store.take([asked(limit, "a")], options);
      const again = await under.store.take([asked(limit, "a")], options);
      expectEqual(
        [again.replayed, again.taken, only(again).remaining],
        [true, true, only(first).remaining],
        "replayed",
      );
      expectEqual(only(await under.store.peek([asked(limit, "x")])).remaining, 1, "noted once");
    },
  },
  {
    name: "a reset forgets all values, and a block keeps even seen ones out",
    async run(open) {
      const under = await open();
      const limit = distinctLimit([testWindow(1, hourMs)], { blockable: true });
      await take(under, [asked(limit, "a")]);
      expectEqual((await take(under, [asked(limit, "b")])).taken, false, "full");
      await under.store.reset([asked(limit, "")]);
      expectEqual((await take(under, [asked(limit, "b")])).taken, true, "empty");
      await under.store.block([asked(limit, "")], 5000);
      expectEqual(only(await take(under, [asked(limit, "b")])).fits, "blocked", "the subject is blocked");
    },
  },
  {
    name: "a lower limit counts what was seen, and a higher one has room at once",
    async run(open) {
      const under = await open();
      const limits = [2, 4, 1].map((most) => distinctLimit([testWindow(most, hourMs)]));
      await take(under, [asked(limits[0]!, "a")]);
      await take(under, [asked(limits[0]!, "b")]);
      expectEqual(shown(only(await take(under, [asked(limits[1]!, "c")]))), ["allowed", 1], "four, with three seen");
      expectEqual(shown(only(await take(under, [asked(limits[2]!, "d")]))), ["denied", 0, hourMs], "one, with three");
      expectEqual(shown(only(await take(under, [asked(limits[2]!, "c")]))), ["allowed", 0], "seen ones pass");
    },
  },
  {
    name: "values are counted exactly up to 1 536, and within the error above",
    async run(open) {
      const under = await open();
      const exact = distinctLimit([testWindow(exactValues, hourMs)]);
      const large = distinctLimit([testWindow(2000, hourMs)], { name: "large" });
      const passed = [0, 0];
      for (let from = 0; from < 2400; from += 100) {
        const answers = Array.from({ length: 100 }, async (_, i) => [
          await take(under, [asked(exact, `user ${from + i}`)]),
          await take(under, [asked(large, `user ${from + i}`)]),
        ]);
        for (const pair of await Promise.all(answers))
          for (const [i, { taken }] of pair.entries()) if (taken) passed[i]! += 1;
      }
      expectEqual(passed[0], exactValues, "exactly as many as the limit");
      expectEqual(passed[1]! >= 2000 && passed[1]! <= 2100, true, `2 000 to 2 100, and not ${passed[1]}`);
      for (let i = 0; i < 1000; i += 100) {
        const seen = [asked(exact, `user ${i}`), asked(large, `user ${i}`)];
        expectEqual((await take(under, seen)).taken, true, "seen before");
      }
    },
  },
];
