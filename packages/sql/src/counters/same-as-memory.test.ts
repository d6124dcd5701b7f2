import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { startPostgres, type TestPostgres } from "@sluice/test-servers";
import fc from "fast-check";
import { ManualClock, MemoryCounters, SluiceError } from "sluice";
import type { CompiledLimit, LimitOutcome, ResolvedLimit, TakeAnswer, WindowReading } from "sluice/store";
import { compileTestLimit, conversationStartMs, resolvedLimit, testWindow } from "sluice/testing";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { SqlCounters } from "./sql-counters.ts";
import { withOtherSubjects } from "./testing/with-other-subjects.ts";
import { withStrongCounters } from "./with-strong-counters.ts";

/** Random conversations, held with counters in memory and in a database at once: the same decisions, the same numbers. */

const algorithms = ["gcra", "token_bucket", "leaky_bucket", "fixed_window", "sliding_window", "sliding_log"] as const;

const sizes = [
  [testWindow(5, 1000)],
  [testWindow(10, 10_000), testWindow(4, 1000)],
  [testWindow(50, 60_000), testWindow(7, 1000), testWindow(20, 10_000)],
  [{ limit: 6, per: { kind: "never" }, burst: 6 } as const],
  [testWindow(30, 40 * 24 * 3_600_000)],
  [testWindow(3, 1000)],
];

const limitArbitrary = fc.record({
  algorithm: fc.constantFrom(...algorithms),
  size: fc.nat({ max: sizes.length - 1 }),
  blockForMs: fc.constantFrom(0, 0, 0, 9000),
  blockable: fc.constantFrom(false, false, true),
  countDenials: fc.constantFrom(false, false, true),
  group: fc.constantFrom(0, 0, 0, 1),
  counters: fc.constantFrom("auto" as const, "strong" as const),
});
type LimitPlan = typeof limitArbitrary extends fc.Arbitrary<infer T> ? T : never;

const which = fc.nat({ max: 3 });
const subject = fc.nat({ max: 1 });
const several = fc.uniqueArray(which, { minLength: 1, maxLength: 3 });
const cost = fc.integer({ min: 1, max: 4 });
const take = fc.record({
  do: fc.constant("take" as const),
  ...{ several, subject, cost, receipt: fc.boolean(), record: fc.boolean() },
  id: fc.option(fc.nat({ max: 3 }), { nil: undefined, freq: 4 }),
});
const waits = fc.oneof(fc.nat({ max: 400 }), fc.nat({ max: 30_000 }), fc.constantFrom(250, 500, 1000, 24 * 3_600_000));
const stepArbitrary = fc.oneof(
  { weight: 8, arbitrary: take },
  { weight: 4, arbitrary: fc.record({ do: fc.constant("wait" as const), ms: waits }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("peek" as const), several, subject, cost }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant("give" as const), which: fc.nat({ max: 5 }) }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant("charge" as const), which, subject, cost }) },
  {
    weight: 2,
    arbitrary: fc.record({
      do: fc.constant("credit" as const),
      ...{ which, subject, cost: fc.oneof(cost, fc.constant(100_000)) },
    }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("block" as const), which, subject, cost }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("reset" as const), which, subject }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("read" as const), which, subject }) },
  {
    weight: 1,
    arbitrary: fc.record({ do: fc.constant("edit" as const), which, factor: fc.constantFrom(0.5, 2, 3) }),
  },
);
type StepPlan = typeof stepArbitrary extends fc.Arbitrary<infer T> ? T : never;

function compile(plan: LimitPlan, policy: string, factor = 1): CompiledLimit {
  const windows = sizes[plan.size]!.map((window) => {
    const limit = Math.max(1, Math.floor(window.limit * factor));
    return { ...window, limit, burst: limit };
  });
  return compileTestLimit({ ...plan, windows, policy });
}

function shown({ taken, atMs, replayed, receipt, outcomes, records }: TakeAnswer): unknown {
  const recorded = records?.map((one) => one && { ...one, windows: readings(one.windows) });
  // A repeated answer describes the records as they are now.
  return {
    ...{ taken, atMs, replayed, receipt: receipt !== undefined, outcomes: outcomes.map(shownOutcome) },
    records: replayed ? undefined : recorded,
  };
}

function shownOutcome({ window, ...rest }: LimitOutcome): unknown {
  return { ...rest, window: window.identity };
}

function readings(of: readonly WindowReading[]): unknown {
  return of.map(({ remaining, resetAfterMs, state }) => ({ remaining, resetAfterMs, state }));
}

async function reported<T>(ask: () => T | Promise<T>): Promise<T | string> {
  try {
    return await ask();
  } catch (error) {
    if (error instanceof SluiceError) return error.code;
    throw error;
  }
}

async function converse(
  memory: MemoryCounters,
  store: ReturnType<typeof withOtherSubjects>,
  clock: ManualClock,
  plans: readonly LimitPlan[],
  steps: readonly StepPlan[],
  across = false,
): Promise<void> {
  const limits = plans.map((plan, i) => compile(plan, `p${i}`));
  const receipts: [string, string][] = [];
  let edited = false;
  const resolved = (indexes: readonly number[], of: number, each = 1): ResolvedLimit[] =>
    indexes.filter((i) => i < plans.length).map((i) => resolvedLimit(limits[i]!, `u${of}`, each, plans[i]!.group));
  for (const [number, step] of steps.entries()) {
    const note = `step ${number}: ${JSON.stringify(step)}`;
    if (step.do === "wait") clock.advance(step.ms);
    else if (step.do === "edit") {
      edited = true;
      if (step.which < plans.length) limits[step.which] = compile(plans[step.which]!, `p${step.which}`, step.factor);
    } else if (step.do === "give") {
      const pair = receipts[step.which];
      if (pair !== undefined) expect(await store.give(pair[1]), note).toBe(memory.give(pair[0]));
    } else if (step.do === "take" || step.do === "peek") {
      const asked = resolved(step.several, step.subject, step.cost);
      if (asked.length === 0) continue;
      if (step.do === "peek") {
        expect(shown(await store.peek(asked)), note).toEqual(shown(memory.peek(asked)));
        continue;
      }
      const fingerprint = JSON.stringify([step.several, step.subject, step.cost]);
      // Two places notice an id that is used for another request only if both were asked.
      const id = step.id === undefined ? undefined : `id${step.id}${across ? fingerprint : ""}`;
      const options = { id, fingerprint, receipt: step.receipt, record: step.record };
      const ours = await reported(() => store.take(asked, options));
      const theirs = await reported(() => memory.take(asked, options));
      if (typeof theirs === "string" || typeof ours === "string") expect(ours, note).toEqual(theirs);
      else {
        // An answer that is given again after an edit is described by the limit as it is now.
        if (theirs.replayed && edited) expect([ours.taken, ours.replayed], note).toEqual([true, true]);
        else expect(shown(ours), note).toEqual(shown(theirs));
        if (theirs.receipt !== undefined && ours.receipt !== undefined) receipts.push([theirs.receipt, ours.receipt]);
      }
    } else {
      const each = step.do === "charge" ? step.cost : step.do === "credit" ? -step.cost : 1;
      const asked = resolved([step.which], step.subject, each);
      if (asked.length === 0) continue;
      if (step.do === "read") {
        expect(readings(await store.read(asked[0]!)), note).toEqual(readings(memory.read(asked[0]!)));
        continue;
      }
      const both = [memory, store];
      for (const one of both) {
        if (step.do === "reset") await one.reset(asked);
        else if (step.do === "block") await one.block(asked, step.cost * 4000);
        else await one.charge(asked);
      }
    }
  }
}

let folder: string;
let server: TestPostgres;

beforeAll(async () => {
  folder = mkdtempSync(path.join(tmpdir(), "sluice-same-"));
  server = await startPostgres({ settings: { synchronous_commit: "off" } });
}, 60_000);

afterAll(async () => {
  rmSync(folder, { recursive: true, force: true });
  await server.close();
});

describe.each([
  ["an SQLite file", () => `sqlite:${path.join(folder, "counters.db")}`, 60],
  ["PostgreSQL", () => server.url, 120],
] as const)("in %s", (_kind, url, runs) => {
  test("random conversations go as in memory", { timeout: 120_000 }, async () => {
    const clock = new ManualClock(conversationStartMs);
    const store = new SqlCounters({ url: url(), deadlineMs: 60_000, tune: { nowMs: () => clock.epochMs() } });
    let number = 0;
    try {
      await fc.assert(
        fc.asyncProperty(
          fc.array(limitArbitrary, { minLength: 1, maxLength: 4 }),
          fc.array(stepArbitrary, { minLength: 10, maxLength: 60 }),
          async (plans, steps) => {
            number += 1;
            clock.advance(conversationStartMs - clock.epochMs());
            const others = withOtherSubjects(store, String(number));
            await converse(new MemoryCounters({ clock }), others, clock, plans, steps);
          },
        ),
        { numRuns: runs },
      );
    } finally {
      await store.close();
    }
  });

  test("takes that share a transaction go as one after the other in memory", { timeout: 120_000 }, async () => {
    const clock = new ManualClock(conversationStartMs);
    const store = new SqlCounters({
      ...{ url: url(), deadlineMs: 60_000, connections: 1, tune: { nowMs: () => clock.epochMs() } },
    });
    let number = 0;
    const round = fc.record({ waitMs: fc.nat({ max: 500 }), takes: fc.array(take, { maxLength: 60 }) });
    try {
      await fc.assert(
        fc.asyncProperty(
          fc.array(limitArbitrary, { minLength: 4, maxLength: 4 }),
          fc.array(round, { maxLength: 5 }),
          async (plans, rounds) => {
            number += 1;
            clock.advance(conversationStartMs - clock.epochMs());
            const memory = new MemoryCounters({ clock });
            const others = withOtherSubjects(store, `together ${number}`);
            const limits = plans.map((plan, i) => compile(plan, `p${i}`));
            for (const { waitMs, takes } of rounds) {
              clock.advance(waitMs);
              const asked = takes.map((one) =>
                one.several.map((i) => resolvedLimit(limits[i]!, `u${one.subject}`, one.cost, plans[i]!.group)),
              );
              const ours = await Promise.all(asked.map((one) => others.take(one)));
              expect(ours.map(shown)).toEqual(asked.map((one) => shown(memory.take(one))));
            }
          },
        ),
        { numRuns: runs },
      );
    } finally {
      await store.close();
    }
  });
});

test("random conversations about limits of both kinds go as in memory", { timeout: 120_000 }, async () => {
  const clock = new ManualClock(conversationStartMs);
  const strong = new SqlCounters({ url: server.url, deadlineMs: 60_000, tune: { nowMs: () => clock.epochMs() } });
  // A block, and a record, is written by the part that denied; the others are only peeked at. What one part took and
  // gave back in between moves the stretch of time that receipts stand for, and puts off the end of a one-off quota.
  const mixed = limitArbitrary.map((plan) => ({
    ...{ ...plan, blockForMs: 0 as const, countDenials: false, size: plan.size === 3 ? 0 : plan.size },
    group: 0 as const,
  }));
  const withoutReceipts = stepArbitrary.map((step): StepPlan => {
    if (step.do === "give") return { do: "wait", ms: 0 };
    return step.do === "take" ? { ...step, receipt: false, record: false } : step;
  });
  let number = 0;
  try {
    await fc.assert(
      fc.asyncProperty(
        fc.array(mixed, { minLength: 2, maxLength: 4 }),
        fc.array(withoutReceipts, { minLength: 10, maxLength: 60 }),
        async (plans, steps) => {
          number += 1;
          clock.advance(conversationStartMs - clock.epochMs());
          const both = withStrongCounters(new MemoryCounters({ clock }), strong);
          const others = withOtherSubjects(both, `mixed ${number}`);
          await converse(new MemoryCounters({ clock }), others, clock, plans, steps, true);
        },
      ),
      { numRuns: 100 },
    );
  } finally {
    await strong.close();
  }
});
