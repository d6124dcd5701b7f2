import * as fc from "fast-check";
import { expect, it } from "vitest";
import { ManualClock } from "./clock.ts";
import type { CounterStore } from "./counters/counter-store.ts";
import { MemoryCounters } from "./counters/memory-counters.ts";
import { createLimiter } from "./create-limiter.ts";
import type { Decision } from "./decision/decision.ts";
import { LeasedCounters } from "./leases/leased-counters.ts";
import { MemorySubjectDirectory } from "./match/subject-directory.ts";

const algorithms = ["gcra", "token_bucket", "leaky_bucket"] as const;
const windows = ["20/s", "1000/s", { limit: 100, per: "1s", burst: 7 }, "30/m"];
const users = ["ada", "bob", "toString"];

type Step =
  | { readonly does: "check"; readonly user: string; readonly tier: string; readonly cost: number }
  | { readonly does: "charge"; readonly user: string; readonly cost: number }
  | { readonly does: "reset" | "promote"; readonly user: string }
  | { readonly does: "edit"; readonly window: number }
  | { readonly does: "wait"; readonly ms: number };

const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 12,
    arbitrary: fc.record({
      does: fc.constant("check" as const),
      user: fc.constantFrom(...users),
      tier: fc.constantFrom("", "", "", "pro", "nobody"),
      cost: fc.constantFrom(1, 1, 1, 1, 2, 5, 8, 2000),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      does: fc.constant("charge" as const),
      user: fc.constantFrom(...users),
      cost: fc.constantFrom(-3, 5, 40),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      does: fc.constantFrom("reset" as const, "promote" as const),
      user: fc.constantFrom(...users),
    }),
  },
  { weight: 1, arbitrary: fc.record({ does: fc.constant("edit" as const), window: fc.nat(windows.length - 1) }) },
  {
    weight: 4,
    arbitrary: fc.record({ does: fc.constant("wait" as const), ms: fc.constantFrom(0.25, 1, 20, 333, 5000) }),
  },
);

interface Talk {
  readonly algorithm: (typeof algorithms)[number];
  readonly window: number;
  readonly repeat: number;
  readonly steps: readonly Step[];
}

const talk: fc.Arbitrary<Talk> = fc.record({
  algorithm: fc.constantFrom(...algorithms),
  window: fc.nat(windows.length - 1),
  /** How often each check is made. */
  repeat: fc.constantFrom(1, 4),
  steps: fc.array(step, { minLength: 5, maxLength: 60 }),
});

function policies({ algorithm }: Talk, window: number): Readonly<Record<string, unknown>> {
  const limits = [{ by: ["user"], algorithm, windows: [windows[window]], tiers: { pro: { windows: ["2000/s"] } } }];
  return { policies: [{ id: "api", max_overshoot: "50%", limits }] };
}

async function hold(
  said: Talk,
  createCounters: (clock: ManualClock) => CounterStore,
  details: boolean,
): Promise<Decision[]> {
  const clock = new ManualClock(1_700_000_000_000, 1000);
  const subjects = new MemorySubjectDirectory();
  const counters = createCounters(clock);
  const limiter = createLimiter({ clock, counters, subjects, policies: policies(said, said.window) });
  const decisions: Decision[] = [];
  for (const one of said.steps) {
    switch (one.does) {
      case "wait":
        clock.advance(one.ms);
        break;
      case "edit":
        limiter.usePolicies(policies(said, one.window));
        break;
      case "reset":
        await limiter.reset({ dimensions: { user: one.user } });
        break;
      case "promote":
        subjects.setTier("user", one.user, "pro");
        break;
      case "charge":
        await limiter.charge({ dimensions: { user: one.user }, cost: one.cost });
        break;
      case "check":
        for (let i = 0; i < said.repeat; i++) {
          const asked = { dimensions: { user: one.user, tier: one.tier }, cost: one.cost };
          const decision = await limiter.check(details ? { ...asked, details } : asked);
          decisions.push({ ...decision, limits: undefined });
          for (let turn = 0; turn < 20; turn++) await Promise.resolve();
        }
    }
  }
  return decisions;
}

const stores: readonly (readonly [string, (clock: ManualClock) => CounterStore])[] = [
  ["counters in memory", (clock) => new MemoryCounters({ clock })],
  [
    "leased counters",
    (clock) => {
      const times = { refreshMs: 500, leaseMs: 2000, hotPerSecond: 1, maxDenialMs: 0 };
      return new LeasedCounters(new MemoryCounters({ clock }), { clock, callLater: () => () => undefined, ...times });
    },
  ],
];

it.each(stores)("on %s a check decides the same with and without details", async (_, createCounters) => {
  await fc.assert(
    fc.asyncProperty(talk, async (said) => {
      expect(await hold(said, createCounters, false)).toEqual(await hold(said, createCounters, true));
    }),
    { numRuns: 150 },
  );
});
