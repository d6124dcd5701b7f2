import { flavors, startCluster, startServer } from "@sluice/test-servers";
import fc from "fast-check";
import { type ManualClock, MemoryCounters, SluiceError, type Window } from "sluice";
import type { LimitOutcome, ResolvedLimit, TakeAnswer } from "sluice/store";
import { compileTestLimit, resolvedLimit, testWindow } from "sluice/testing";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { RedisCounters } from "./redis-counters.ts";
import { scriptsOnTestTime, testTime } from "./testing/scripts-on-test-time.ts";

/** Random conversations about holds, in memory and on a server at once: the same answers, and the same counters. */

const algorithms = ["gcra", "leaky_bucket", "fixed_window", "sliding_window", "sliding_log"] as const;
const day = { limit: 20, per: { kind: "calendar", unit: "day", timeZone: "Europe/Berlin" }, burst: 20 } as const;

const limitArbitrary = fc.record({
  algorithm: fc.constantFrom(...algorithms),
  windows: fc.constantFrom<readonly Window[]>(
    [testWindow(12, 1000)],
    [testWindow(7, 3000)],
    [testWindow(30, 60_000), testWindow(9, 1000)],
    [testWindow(20, 40 * 24 * 3_600_000)],
    [day],
  ),
  by: fc.constantFrom("tenant", "tenant", "ip"),
  group: fc.constantFrom(0, 0, 0, 1),
});

const which = fc.nat({ max: 6 });
const limits = fc.uniqueArray(fc.nat({ max: 2 }), { minLength: 1, maxLength: 3 });
const cost = fc.integer({ min: 1, max: 8 });
const stepArbitrary = fc.oneof(
  {
    weight: 5,
    arbitrary: fc.record({
      do: fc.constant("hold" as const),
      limits,
      cost,
      holdMs: fc.constantFrom(1, 400, 5000, 60_000, 86_400_000),
      id: fc.option(fc.nat({ max: 3 }), { nil: undefined, freq: 3 }),
    }),
  },
  {
    weight: 7,
    arbitrary: fc.record({
      do: fc.constant("commit" as const),
      which,
      actual: fc.oneof(fc.nat({ max: 9 }), fc.nat({ max: 3 }), fc.constant(10_000_000)),
      last: fc.constantFrom(true, true, false),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      do: fc.constant("extend" as const),
      which,
      holdMs: fc.constantFrom(1, 3000, 86_400_000),
    }),
  },
  { weight: 3, arbitrary: fc.record({ do: fc.constant("take" as const), limits, cost, receipt: fc.boolean() }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("give" as const), which }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("charge" as const), limits, cost: fc.constantFrom(-9, -2, 5) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("reset" as const), limits }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("edit" as const), factor: fc.constantFrom(0.5, 1, 2) }) },
  {
    weight: 4,
    arbitrary: fc.record({
      do: fc.constant("wait" as const),
      ms: fc.oneof(fc.integer({ min: 0, max: 900 }), fc.constantFrom(0.25, 1, 3000, 40_000, 700_000, 90_000_000)),
    }),
  },
);

type LimitPlan = typeof limitArbitrary extends fc.Arbitrary<infer T> ? T : never;
type StepPlan = typeof stepArbitrary extends fc.Arbitrary<infer T> ? T : never;

const shownOutcome = ({ window, ...rest }: LimitOutcome): unknown => ({ ...rest, window: window.identity });

function shown({ taken, atMs, replayed, receipt, outcomes }: TakeAnswer, edited: boolean): unknown {
  // An answer that is given again after an edit is described by the limit as it is now.
  const described = replayed && edited ? [] : outcomes.map(shownOutcome);
  return { taken, atMs, replayed, receipt: receipt !== undefined, outcomes: described };
}

async function orCode<T>(ask: () => T | Promise<T>): Promise<T | string> {
  try {
    return await ask();
  } catch (error) {
    if (error instanceof SluiceError) return error.code;
    throw error;
  }
}

let conversationNumber = 0;

class Conversation {
  readonly #memory: MemoryCounters;
  readonly #store: RedisCounters;
  readonly #clock: ManualClock;
  readonly #plans: readonly LimitPlan[];
  readonly #name: number;
  readonly #holds: [string, string][] = [];
  readonly #receipts: [string, string][] = [];
  #factor = 1;
  #edited = false;

  constructor(store: RedisCounters, clock: ManualClock, plans: readonly LimitPlan[]) {
    this.#memory = new MemoryCounters({ clock });
    this.#store = store;
    this.#clock = clock;
    this.#plans = plans;
    conversationNumber += 1;
    this.#name = conversationNumber;
  }

  async carryOut(steps: readonly StepPlan[]): Promise<void> {
    for (const [number, step] of steps.entries()) {
      const note = `step ${number}: ${JSON.stringify(step)}`;
      await this.#carryOut(step, note);
      const all = this.#resolve([0, 1, 2], 1);
      // In memory holds expire with the next question; on a server, when some process looks.
      await this.#store.holds.expire();
      expect(shown(await this.#store.peek(all), false), note).toEqual(shown(this.#memory.peek(all), false));
    }
  }

  async #carryOut(step: StepPlan, note: string): Promise<void> {
    const [memory, store] = [this.#memory, this.#store];
    if (step.do === "wait") this.#clock.advance(step.ms);
    else if (step.do === "edit") [this.#factor, this.#edited] = [step.factor, true];
    else if (step.do === "hold" || step.do === "take") {
      const asked = this.#resolve(step.limits, step.cost);
      const id = step.do === "hold" && step.id !== undefined ? `id${step.id}-${this.#name}` : undefined;
      const options = {
        id: id === undefined ? undefined : id + JSON.stringify(step.limits),
        fingerprint: JSON.stringify([step.limits, step.cost]),
        receipt: step.do === "hold" || step.receipt,
        holdMs: step.do === "hold" ? step.holdMs : undefined,
      };
      const ours = await orCode(() => store.take(asked, options));
      const theirs = await orCode(() => memory.take(asked, options));
      if (typeof ours === "string" || typeof theirs === "string") {
        expect(ours, note).toBe(theirs);
        return;
      }
      expect(shown(ours, this.#edited), note).toEqual(shown(theirs, this.#edited));
      if (theirs.receipt === undefined || ours.receipt === undefined) return;
      (step.do === "hold" ? this.#holds : this.#receipts).unshift([theirs.receipt, ours.receipt]);
    } else if (step.do === "charge" || step.do === "reset") {
      const asked = this.#resolve(step.limits, step.do === "charge" ? step.cost : 1);
      memory[step.do](asked);
      await store[step.do](asked);
    } else {
      const pair = (step.do === "give" ? this.#receipts : this.#holds)[step.which];
      if (pair === undefined) return;
      const [theirs, ours] = pair;
      if (step.do === "give") expect(await store.give(ours), note).toBe(memory.give(theirs));
      else if (step.do === "extend")
        expect(await store.holds.extend(ours, step.holdMs), note).toEqual(memory.holds.extend(theirs, step.holdMs));
      else
        expect(await store.holds.commit(ours, step.actual, step.last), note).toEqual(
          memory.holds.commit(theirs, step.actual, step.last),
        );
    }
  }

  #resolve(indexes: readonly number[], cost: number): ResolvedLimit[] {
    return indexes
      .filter((i) => i < this.#plans.length)
      .map((i) => {
        const { algorithm, windows, by, group } = this.#plans[i]!;
        const isBucket = algorithm === "gcra" || algorithm === "leaky_bucket";
        const limit = compileTestLimit({
          algorithm: windows[0] === day ? "fixed_window" : algorithm,
          windows: windows.map((window) => {
            const scaled = Math.max(1, Math.floor(window.limit * this.#factor));
            return { ...window, limit: scaled, burst: isBucket && windows[0] !== day ? scaled + 3 : scaled };
          }),
          policy: `h${i}-${this.#name}`,
          by: [by],
        });
        return resolvedLimit(limit, by === "tenant" ? "acme" : "10.0.0.1", cost, group);
      });
  }
}

async function property(
  servers: string,
  runs: number,
  plans: fc.Arbitrary<LimitPlan>,
  keep: (step: StepPlan) => boolean,
) {
  const clock = testTime();
  const tune = scriptsOnTestTime(clock, { keysLast: true });
  const store = new RedisCounters({ servers, prefix: `h${runs}`, deadlineMs: 60_000, lanes: 4, tune });
  try {
    await store.connected();
    await fc.assert(
      fc.asyncProperty(
        fc.array(plans, { minLength: 1, maxLength: 3 }),
        fc.array(stepArbitrary, { minLength: 5, maxLength: 40 }),
        async (limitPlans, steps) => {
          clock.advance(testTime().epochMs() - clock.epochMs());
          await new Conversation(store, clock, limitPlans).carryOut(steps.filter(keep));
        },
      ),
      { numRuns: runs },
    );
  } finally {
    await store.close();
  }
}

describe.each(flavors)("holds on %s", (flavor) => {
  let closing: (() => Promise<void>)[] = [];
  let single = "";
  let clustered = "";
  beforeAll(async () => {
    const [server, cluster] = await Promise.all([startServer({ flavor }), startCluster({ flavor })]);
    closing = [() => server.close(), () => cluster.close()];
    single = server.url;
    clustered = `redis+cluster://${cluster.nodes.map(({ host, port }) => `${host}:${port}`).join(",")}`;
  });
  afterAll(async () => {
    await Promise.all(closing.map((close) => close()));
  });

  test(
    "go as in memory, in random conversations on one server",
    () => property(single, 150, limitArbitrary, () => true),
    120_000,
  );

  test("go as in memory, in random conversations across slots", () => {
    // What a denied part took and gave back in between moves what receipts stand for: see same-as-memory.test.ts.
    const keep = (step: StepPlan): boolean => step.do !== "give" && !(step.do === "take" && step.receipt);
    // Whether a request that shadow alone decides was repeated is not reported across slots.
    const enforced = limitArbitrary.map((plan) => ({ ...plan, group: 0 as const }));
    return property(clustered, 100, enforced, keep);
  }, 120_000);

  test("of a process that is gone expire in another, in every lane", async () => {
    const clock = testTime();
    const open = (): RedisCounters =>
      new RedisCounters({ servers: clustered, prefix: "gone", deadlineMs: 5000, tune: scriptsOnTestTime(clock) });
    const [crashed, other] = [open(), open()];
    const limit = compileTestLimit({ algorithm: "gcra", windows: [testWindow(10, 3_600_000)] });
    const subjects = Array.from({ length: 20 }, (_, i) => resolvedLimit(limit, `u${i}`, 8));
    for (const asked of subjects) await crashed.take([asked], { receipt: true, holdMs: 5000 });
    await crashed.close();
    clock.advance(5000);
    await other.connected();
    await other.holds.expire();
    const left = await Promise.all(subjects.map((asked) => other.peek([asked])));
    expect(left.map(({ outcomes }) => outcomes[0]!.remaining)).toEqual(subjects.map(() => 10));
    await other.close();
  });

  test("of a crowd of one subject are given back as in memory, and expire all at once", async () => {
    const clock = testTime();
    const store = new RedisCounters({
      servers: single,
      prefix: "crowd",
      deadlineMs: 5000,
      tune: scriptsOnTestTime(clock),
    });
    const memory = new MemoryCounters({ clock });
    const limit = compileTestLimit({ algorithm: "gcra", windows: [testWindow(2000, 10_000_000_000)] });
    const asked = [resolvedLimit(limit, "u", 2)];
    const options = { receipt: true, holdMs: 5000 };
    const ids = await Promise.all(Array.from({ length: 550 }, async () => (await store.take(asked, options)).receipt!));
    const same = ids.map(() => memory.take(asked, options).receipt!);
    const left = async (): Promise<readonly number[]> => [
      (await store.peek(asked)).outcomes[0]!.remaining,
      memory.peek(asked).outcomes[0]!.remaining,
    ];
    for (const id of ids.slice(250).toReversed()) await store.holds.commit(id, 1, true);
    for (const id of same.slice(250).toReversed()) memory.holds.commit(id, 1, true);
    const [before, here] = await left();
    expect(before).toBe(here);
    clock.advance(5000);
    await store.holds.expire();
    const [after] = await left();
    // More than one look reads at once.
    expect(after! - before!).toBeGreaterThan(400);
    await store.close();
  });

  test("expire in the process that made them, without being asked", async () => {
    const store = new RedisCounters({ servers: single, prefix: "due", deadlineMs: 5000 });
    const asked = [
      resolvedLimit(compileTestLimit({ algorithm: "gcra", windows: [testWindow(10, 3_600_000)] }), "u", 8),
    ];
    await store.take(asked, { receipt: true, holdMs: 1 });
    const remaining = async (): Promise<number> => (await store.peek(asked)).outcomes[0]!.remaining;
    await expect.poll(remaining, { timeout: 30_000, interval: 50 }).toBe(10);
    await store.close();
  });

  test("are settled by any process that shares the counters", async () => {
    const [one, other] = [0, 1].map(() => new RedisCounters({ servers: single, prefix: "shared", deadlineMs: 5000 }));
    const limit = compileTestLimit({ algorithm: "gcra", windows: [testWindow(10, 60_000)] });
    const asked = [resolvedLimit(limit, "u", 8)];
    const { receipt } = await one!.take(asked, { receipt: true, holdMs: 60_000, id: "chat", fingerprint: "f" });
    expect(await other!.holds.commit(receipt!, 2, true)).toMatchObject({ state: "settled", actual: 2 });
    expect(await one!.holds.commit(receipt!, 2, true)).toMatchObject({ state: "settled", replayed: true });
    await Promise.all([one!.close(), other!.close()]);
  });
});
