import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { ManualClock } from "../clock.ts";
import type { CounterStore } from "../counters/counter-store.ts";
import { MemoryCounters, type MemoryCountersOptions } from "../counters/memory-counters.ts";
import { createLimiter } from "../create-limiter.ts";
import type { Decision } from "../decision/decision.ts";
import { SluiceError } from "../errors.ts";
import { HotKeys } from "../hot-keys/hot-keys.ts";
import type { Limiter, LimiterOptions } from "../limiter.ts";
import { algorithms } from "../policy/policy.ts";
import type { CheckRequest } from "../request/check-request.ts";
import { limiterStartMs } from "../testing/open-limiter.ts";

/** Nothing but the contract, so that every check goes the general way. */
function withoutQuickTakes(counters: MemoryCounters): CounterStore {
  return {
    local: true,
    take: (limits, options) => counters.take(limits, options),
    peek: (limits, options) => counters.peek(limits, options),
    give: (receipt) => counters.give(receipt),
    charge: (limits) => counters.charge(limits),
    block: (limits, forMs) => counters.block(limits, forMs),
    reset: (limits) => counters.reset(limits),
    read: (limit) => counters.read(limit),
    close: () => counters.close(),
  };
}

interface Opened {
  readonly limiter: Limiter;
  readonly clock: ManualClock;
  readonly counters: MemoryCounters;
  readonly missing: string[];
}

interface Setting {
  readonly policies: Record<string, unknown>;
  readonly bounds?: MemoryCountersOptions;
  readonly tellsMissing?: boolean;
  readonly notesHotKeys?: boolean;
}

function open(way: "quick" | "general", { policies, bounds, tellsMissing, notesHotKeys }: Setting): Opened {
  const clock = new ManualClock(limiterStartMs);
  const missing: string[] = [];
  const hotKeys = notesHotKeys ? new HotKeys({ clock }) : undefined;
  const counters = new MemoryCounters({ clock, hotKeys, ...bounds });
  const options: LimiterOptions = {
    policies,
    clock,
    counters: way === "quick" ? counters : withoutQuickTakes(counters),
    ...(tellsMissing && { onMissing: (policy, dimension) => missing.push(`${policy.id} ${dimension}`) }),
  };
  return { limiter: createLimiter(options), clock, counters, missing };
}

const bys = [["tenant"], ["tenant", "user"], ["ip"], ["user"], [], ["tenant", "user", "ip"], ["subject"], ["endpoint"]];
const windows = ["4/s", "3/s burst 9", "4/m", "20/m", "7/10s", "1000/h"];

const limit = fc.record({
  by: fc.constantFrom(...bys),
  // Half of them by the default, whose windows are arrival times.
  algorithm: fc.oneof(fc.constant("gcra"), fc.constantFrom(...algorithms)),
  windows: fc.uniqueArray(fc.constantFrom(...windows), {
    minLength: 1,
    maxLength: 2,
    selector: (text) => text.replace(/^\d+\/| burst.*/g, ""),
  }),
  missing: fc.constantFrom("share", "share", "share", "share", "skip", "deny"),
  tiers: fc.constantFrom(undefined, undefined, { pro: { windows: "40/s" }, free: { windows: ["2/s", "9/m"] } }),
  block_for: fc.constantFrom(undefined, undefined, undefined, undefined, undefined, "2s"),
});

/** Bursts are for some algorithms only, and a limit is named so that no two share counters. */
function tidy(drawn: Record<string, unknown>, name: string): Record<string, unknown> {
  const one = drawn as Record<string, unknown> & { readonly windows: readonly string[]; readonly algorithm: string };
  const bursts = ["gcra", "token_bucket", "leaky_bucket"].includes(one.algorithm);
  const plain = one.windows.map((text) => (bursts ? text : text.replace(/ burst.*/, "")));
  return present({ ...one, name, windows: plain });
}

function present(drawn: Record<string, unknown>): Record<string, unknown> {
  return Object.fromEntries(Object.entries(drawn).filter(([, value]) => value !== undefined));
}

const policy = fc.record({
  mode: fc.constantFrom("enforce", "enforce", "enforce", "shadow"),
  limits: fc.array(limit, { minLength: 1, maxLength: 3 }),
  count_denials: fc.constantFrom(undefined, undefined, undefined, undefined, true),
  cost: fc.constantFrom(undefined, undefined, undefined, { "/a": 3 }),
  on_failure: fc.constantFrom("open", "closed", "local"),
});

const document = fc.array(policy, { minLength: 1, maxLength: 3 }).map((drawn) => ({
  policies: drawn.map(({ limits, ...more }, p) => ({
    ...present(more),
    id: `p${p}`,
    limits: limits.map((one, i) => tidy(one, `l${i}`)),
  })),
}));

const subjects = fc.constantFrom(undefined, [
  { tenant: "t", tier: "pro" },
  { user: "u", limits: [{ policy: "p0", windows: "6/s" }] },
]);

const dimensions = fc.record(
  {
    tenant: fc.constantFrom("t", "v", "a|b", "a\\b", "żółw"),
    user: fc.constantFrom("u", "w", "a long name of a user"),
    ip: fc.constantFrom("10.0.0.1", "::ffff:10.0.0.1", "2001:db8::1"),
    tier: fc.constantFrom("pro", "free"),
    endpoint: fc.constantFrom("/a", "/b", "//b"),
  },
  { requiredKeys: [] },
);

type Step =
  | { readonly kind: "check"; readonly request: CheckRequest; readonly afterMs: number }
  | { readonly kind: "charge" | "reset" | "block"; readonly request: CheckRequest }
  | { readonly kind: "give" }
  | { readonly kind: "force"; readonly mode: "open" | "closed" | undefined };

const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 20,
    arbitrary: fc.record({
      kind: fc.constant("check" as const),
      afterMs: fc.oneof(fc.constant(0), fc.nat(400), fc.nat(20_000)),
      request: fc
        .record(
          {
            dimensions,
            cost: fc.constantFrom(1, 1, 2, 5, 50),
            id: fc.constantFrom(undefined, undefined, undefined, undefined, undefined, "one", "two"),
            preview: fc.constantFrom(false, false, false, false, true),
            details: fc.constantFrom(false, false, false, true),
            receipt: fc.constantFrom(false, false, false, true),
          },
          { requiredKeys: ["dimensions"] },
        )
        .map((request) => request as CheckRequest),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      kind: fc.constantFrom("charge" as const, "reset" as const, "block" as const),
      request: dimensions.map((own) => ({ dimensions: own as Record<string, string> })),
    }),
  },
  { weight: 1, arbitrary: fc.constant({ kind: "give" as const }) },
  {
    weight: 1,
    arbitrary: fc.record({
      kind: fc.constant("force" as const),
      mode: fc.constantFrom("open" as const, "closed" as const, undefined, undefined),
    }),
  },
);

type Said = Decision | { readonly code: string };

async function attempt(act: () => unknown): Promise<unknown> {
  try {
    return await act();
  } catch (error) {
    if (!(error instanceof SluiceError)) throw error;
    return { code: error.code, message: error.message };
  }
}

/** One step of one of the limiters: what it says, and the receipt it gave, by which its own take is given back. */
async function play({ limiter, clock }: Opened, one: Step, receipts: string[]): Promise<unknown> {
  switch (one.kind) {
    case "check": {
      clock.advance(one.afterMs);
      const said = (await attempt(() => limiter.checkSync(one.request))) as Said;
      if (!("receipt" in said) || said.receipt === undefined) return said;
      receipts.push(said.receipt);
      return { ...said, receipt: "a receipt" };
    }
    case "give": {
      const receipt = receipts.pop();
      return receipt === undefined ? undefined : limiter.give(receipt);
    }
    case "force":
      limiter.force(one.mode && { mode: one.mode, untilMs: clock.epochMs() + 300 });
      return undefined;
    case "block":
      return attempt(() => limiter.block(one.request, 500));
    default:
      return attempt(() => (one.kind === "charge" ? limiter.charge(one.request) : limiter.reset(one.request)));
  }
}

async function expectSame(setting: Setting, steps: readonly Step[]): Promise<void> {
  const quick = open("quick", setting);
  const general = open("general", setting);
  const receipts: readonly [string[], string[]] = [[], []];
  for (const one of steps) {
    const said = await play(quick, one, receipts[0]);
    expect(said).toEqual(await play(general, one, receipts[1]));
    expect(quick.missing).toEqual(general.missing);
    expect(quick.counters.stats).toEqual(general.counters.stats);
  }
}

describe("requests with several limits", () => {
  it("are decided alike by the quick way and by the general one, whatever the policies and whatever is asked", async () => {
    const setting = fc.record({ tellsMissing: fc.boolean(), notesHotKeys: fc.boolean() });
    await fc.assert(
      fc.asyncProperty(
        document,
        subjects,
        setting,
        fc.array(step, { maxLength: 40 }),
        async (drawn, known, more, steps) => {
          const policies = { ...drawn, ...(known !== undefined && { subjects: known }) };
          await expectSame({ policies, ...more }, steps);
        },
      ),
      { numRuns: 300 },
    );
  });

  it("are decided alike where counters find no room", async () => {
    const limits = [
      { by: ["tenant"], windows: "4/s" },
      { by: ["tenant", "user"], windows: ["3/s", "20/m"] },
      { by: ["ip"], windows: "9/m" },
    ];
    const manyDimensions = fc.record({
      tenant: fc.integer({ min: 0, max: 30 }).map((n) => `t${n}`),
      user: fc.integer({ min: 0, max: 30 }).map((n) => `u${n}`),
      ip: fc.integer({ min: 0, max: 200 }).map((n) => `10.0.0.${n}`),
    });
    const check = fc.record({
      kind: fc.constant("check" as const),
      afterMs: fc.constantFrom(0, 0, 0, 10, 500),
      request: fc.record({ dimensions: manyDimensions, cost: fc.constantFrom(1, 1, 3) }),
    });
    await fc.assert(
      fc.asyncProperty(
        fc.constantFrom("open", "closed"),
        fc.integer({ min: 0, max: 40 }),
        fc.array(check, { minLength: 30, maxLength: 120 }),
        async (on_failure, maxCounters, steps) => {
          await expectSame(
            { policies: { policies: [{ id: "p", limits, on_failure }] }, bounds: { maxCounters } },
            steps,
          );
        },
      ),
      { numRuns: 100 },
    );
  });

  it("say when more is left by all windows that have least", async () => {
    for (const windows of [
      ["4/m", "4/s"],
      ["4/s", "4/m"],
    ]) {
      const setting = { policies: { policies: [{ id: "p", limits: [{ by: ["tenant"], windows }] }] } };
      const request = { dimensions: { tenant: "t" } };
      expect(open("quick", setting).limiter.checkSync(request)).toMatchObject({ remaining: 3, moreAfterMs: 15_000 });
      await expectSame(setting, [{ kind: "check", request, afterMs: 0 }]);
    }
  });

  it("may check from a getter of a dimension, and are not mixed up by it", () => {
    const policies = {
      policies: [
        {
          id: "p",
          limits: [
            { by: ["tenant"], windows: "5/m" },
            { by: ["user"], windows: "9/m" },
          ],
        },
      ],
    };
    const { limiter } = open("quick", { policies });
    let inner: Decision | undefined;
    const outer = limiter.checkSync({
      dimensions: {
        tenant: "outer",
        get user(): string {
          inner ??= limiter.checkSync({ dimensions: { tenant: "inner", user: "v" }, cost: 4 });
          return "u";
        },
      },
    });
    expect(inner).toMatchObject({ allowed: true, scope: "tenant", remaining: 1 });
    expect(outer).toMatchObject({ allowed: true, scope: "tenant", remaining: 4 });
    expect(limiter.checkSync({ dimensions: { tenant: "inner", user: "v" } })).toMatchObject({ remaining: 0 });
    expect(limiter.checkSync({ dimensions: { tenant: "outer", user: "u" } })).toMatchObject({ remaining: 3 });
  });
});
