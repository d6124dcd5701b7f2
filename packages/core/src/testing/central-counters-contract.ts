import { epochMs, ledgerMarginMs } from "../counters/allowance.ts";
import type { CentralCounters, LeaseAnswer, LeaseAsk, ResolvedLimit } from "../counters/counter-store.ts";
import { SluiceError } from "../errors.ts";
import type { Algorithm } from "../policy/policy.ts";
import {
  type ContractCase,
  expectEqual,
  forEachAlgorithm,
  only,
  type StoreUnderTest,
} from "./counter-store-contract.ts";
import { compileTestLimit, resolvedLimit, testWindow } from "./test-limit.ts";

const leasable: readonly Algorithm[] = ["gcra", "token_bucket", "leaky_bucket", "fixed_window", "sliding_window"];

const holdMs = 65_000;

/** 1 000 per minute, of which 100 may be unspent. */
function tenth(algorithm: Algorithm, policy = "test"): ResolvedLimit {
  const windows = [testWindow(1000, 60_000)];
  return resolvedLimit(compileTestLimit({ algorithm, windows, policy, maxOvershoot: 0.1 }), "u");
}

async function lease(
  store: StoreUnderTest["store"],
  limit: ResolvedLimit | readonly ResolvedLimit[],
  ask: Partial<LeaseAsk>,
): Promise<LeaseAnswer> {
  const limits = "limit" in limit ? [limit] : limit;
  return (store as CentralCounters).lease(limits, { want: 0, holdMs, ...ask });
}

async function remaining({ store }: StoreUnderTest, limit: ResolvedLimit): Promise<number> {
  return only(await store.peek([limit])).remaining;
}

/** The promises of a store that grants leases, on top of `counterStoreContract`. */
export const centralCountersContract: readonly ContractCase[] = [
  ...forEachAlgorithm(
    "a grant is charged when it is made, to every window",
    async (algorithm, under) => {
      const windows = [testWindow(1000, 60_000), testWindow(5000, 3_600_000)];
      const limit = resolvedLimit(compileTestLimit({ algorithm, windows, maxOvershoot: 0.1 }), "u");
      const answer = await lease(under.store, limit, { want: 30 });
      expectEqual([answer.granted, answer.unspent], [30, 30], "there is room for it");
      expectEqual(
        only({ ...answer, taken: true, receipt: undefined, replayed: false }).remaining,
        970,
        "it is reported",
      );
      const readings = await under.store.read(limit);
      expectEqual(
        readings.map((reading) => reading.remaining),
        [970, 4970],
        "both windows are charged",
      );
    },
    leasable,
  ),

  ...forEachAlgorithm(
    "a grant is as much as there is, up to what is wanted",
    async (algorithm, under) => {
      const limit = tenth(algorithm);
      await under.store.take([{ ...limit, cost: 993 }]);
      expectEqual((await lease(under.store, limit, { want: 30 })).granted, 7, "seven are left");
      const none = await lease(under.store, limit, { want: 30 });
      expectEqual(none.granted, 0, "and then none");
      expectEqual(none.outcomes[0]?.fits, "later", "which is reported as a denial of one");
      expectEqual(none.unspent, 7, "the ledger knows of the first grant");
    },
    leasable,
  ),

  ...forEachAlgorithm(
    "unspent units never exceed the allowance, and no grant is more than half of what that leaves",
    async (algorithm, under) => {
      const limit = tenth(algorithm);
      const grants: number[] = [];
      for (let i = 0; i < 9; i++) grants.push((await lease(under.store, limit, { want: 1000 })).granted);
      expectEqual(grants, [50, 25, 13, 6, 3, 2, 1, 0, 0], "half of 100, rounded up, and so on");
    },
    leasable,
  ),

  ...forEachAlgorithm(
    "spent units make room for more, and stay charged",
    async (algorithm, under) => {
      const limit = tenth(algorithm);
      const { epoch } = await lease(under.store, limit, { want: 50 });
      const settled = { epoch, spent: 40, kept: 10, returned: 0 };
      const next = await lease(under.store, limit, { want: 1000, settled });
      expectEqual([next.granted, next.unspent], [45, 55], "half of 100 − 10");
      expectEqual(await remaining(under, limit), 905, "both grants are charged, and nothing twice");
    },
    leasable,
  ),

  ...forEachAlgorithm(
    "returned units are back in the counters, and leave the ledger",
    async (algorithm, under) => {
      const limit = tenth(algorithm);
      const { epoch } = await lease(under.store, limit, { want: 50 });
      const settled = { epoch, spent: 20, kept: 0, returned: 30 };
      const answer = await lease(under.store, limit, { settled });
      expectEqual([answer.granted, answer.unspent], [0, 0], "nothing was wanted, and nothing is out");
      expectEqual(await remaining(under, limit), 980, "only what was spent stays charged");
      await lease(under.store, limit, { settled });
      expectEqual(await remaining(under, limit), 980, "what the ledger does not know is not given back");
    },
    leasable,
  ),

  ...forEachAlgorithm(
    "no more is kept than was granted in that epoch, whatever a client claims",
    async (algorithm, under) => {
      const limit = tenth(algorithm);
      await under.store.take([{ ...limit, cost: 300 }]);
      const { epoch } = await lease(under.store, limit, { want: 10 });
      const claimed = await lease(under.store, limit, { settled: { epoch, spent: 0, kept: 1_000_000, returned: 0 } });
      expectEqual([claimed.unspent, claimed.forgotten], [10, 999_990], "ten were granted");
      const other = { epoch: claimed.epoch + epochMs, spent: 0, kept: 50, returned: 0 };
      const unknown = await lease(under.store, limit, { settled: other });
      expectEqual([unknown.unspent, unknown.forgotten], [10, 50], "of another epoch nothing is known");
      const settled = { epoch: claimed.epoch, spent: 0, kept: 4, returned: 1_000_000 };
      const returned = await lease(under.store, limit, { settled });
      expectEqual([returned.unspent, returned.forgotten], [4, 0], "four are kept");
      expectEqual(await remaining(under, limit), 696, "six came back, and nothing that was made up");
    },
    leasable,
  ),

  ...forEachAlgorithm(
    "no more is returned than was granted in that epoch",
    async (algorithm, under) => {
      const limit = tenth(algorithm);
      const { epoch } = await lease(under.store, limit, { want: 10 });
      await under.store.take([{ ...limit, cost: 100 }]);
      await lease(under.store, limit, { settled: { epoch, spent: 0, kept: 0, returned: 60 } });
      expectEqual(await remaining(under, limit), 900, "ten came back");
      await lease(under.store, limit, { settled: { epoch: epoch + epochMs, spent: 0, kept: 0, returned: 60 } });
      expectEqual(await remaining(under, limit), 900, "of another epoch nothing is known");
    },
    leasable,
  ),

  ...forEachAlgorithm(
    "a grant is remembered for as long as it is held, and a margin; what comes back later is refused",
    async (algorithm, under) => {
      const limit = tenth(algorithm);
      const { epoch } = await lease(under.store, limit, { want: 50 });
      await under.advance(holdMs + ledgerMarginMs - 1);
      expectEqual((await lease(under.store, limit, {})).unspent, 50, "it may still be spent somewhere");
      await under.advance(epochMs + 2);
      await under.store.take([{ ...limit, cost: 100 }]);
      const before = await remaining(under, limit);
      const late = await lease(under.store, limit, { settled: { epoch, spent: 0, kept: 0, returned: 50 } });
      expectEqual(late.unspent, 0, "it can no longer be spent");
      expectEqual(await remaining(under, limit), before, "nor given back");
    },
    leasable,
  ),

  ...forEachAlgorithm(
    "kept units are remembered for as long as the new grant",
    async (algorithm, under) => {
      const limit = tenth(algorithm);
      const first = await lease(under.store, limit, { want: 50 });
      await under.advance(holdMs - 1000);
      const settled = { epoch: first.epoch, spent: 30, kept: 20, returned: 0 };
      const second = await lease(under.store, limit, { settled });
      expectEqual([second.granted, second.unspent, second.epoch > first.epoch], [0, 20, true], "kept, and no more");
      await under.advance(holdMs);
      expectEqual((await lease(under.store, limit, {})).unspent, 20, "after the first epoch has ended");
      await under.advance(ledgerMarginMs + epochMs + 1);
      expectEqual((await lease(under.store, limit, {})).unspent, 0, "and not for longer than its own");
    },
    leasable,
  ),

  ...forEachAlgorithm(
    "units returned after the burst was lowered go to a counter that is just used up",
    async (algorithm, under) => {
      const before = tenth(algorithm);
      const windows = [testWindow(1000, 60_000, 100)];
      const after = resolvedLimit(compileTestLimit({ algorithm, windows, maxOvershoot: 0.1 }), "u");
      const { epoch } = await lease(under.store, before, { want: 50 });
      await under.store.take([{ ...before, cost: 900 }]);
      const settled = { epoch, spent: 10, kept: 10, returned: 30 };
      const back = await lease(under.store, after, { settled });
      expectEqual([back.granted, back.unspent, back.outcomes[0]?.remaining], [0, 10, 30], "as much as was returned");
      expectEqual(await remaining(under, after), 30, "and that is kept");
      const next = await lease(under.store, after, { want: 1000 });
      expectEqual([next.granted, next.unspent, next.outcomes[0]?.remaining], [30, 40, 0], "to be leased again");
      await under.advance(600);
      expectEqual(await remaining(under, after), 10, "from then on it fills up by the rate");
    },
    ["gcra", "token_bucket", "leaky_bucket"],
  ),

  ...forEachAlgorithm(
    "a reset forgets the counters, but not outstanding units",
    async (algorithm, under) => {
      const limit = tenth(algorithm);
      await lease(under.store, limit, { want: 50 });
      await under.store.reset([limit]);
      expectEqual(await remaining(under, limit), 1000, "as good as new");
      expectEqual(
        (await lease(under.store, limit, { want: 1000 })).granted,
        25,
        "fifty may still be spent on other nodes",
      );
    },
    leasable,
  ),

  ...forEachAlgorithm(
    "limits that are leased together are charged alike, as the tightest of them allows",
    async (algorithm, under) => {
      // Of one subject, so that they live in one place wherever counters are spread.
      const wide = tenth(algorithm, "wide");
      const narrow = tenth(algorithm, "narrow");
      await under.store.take([{ ...narrow, cost: 960 }]);
      const answer = await lease(under.store, [wide, narrow], { want: 1000 });
      expectEqual(answer.granted, 40, "what the narrow one has left");
      expectEqual([await remaining(under, wide), await remaining(under, narrow)], [960, 0], "from both");
      const settled = { epoch: answer.epoch, spent: 0, kept: 0, returned: 40 };
      await lease(under.store, [wide, narrow], { settled });
      expectEqual([await remaining(under, wide), await remaining(under, narrow)], [1000, 40], "to both");
    },
    leasable,
  ),

  {
    name: "limits that cannot be leased are refused, with the reason",
    async run(open) {
      const { store } = await open();
      const windows = [testWindow(1000, 60_000)];
      const once = { limit: 1000, per: { kind: "never" as const }, burst: 1000 };
      const refused = [
        compileTestLimit({ algorithm: "gcra", windows, maxOvershoot: 0.1, blockable: true, policy: "blockable" }),
        compileTestLimit({ algorithm: "sliding_log", windows, maxOvershoot: 0.1, policy: "log" }),
        compileTestLimit({ algorithm: "fixed_window", windows: [once], maxOvershoot: 0.1, policy: "once" }),
        compileTestLimit({ algorithm: "gcra", windows, maxOvershoot: 0.1, counters: "exact", policy: "exact" }),
        compileTestLimit({ algorithm: "gcra", windows, maxOvershoot: 0, policy: "zero" }),
      ];
      for (const limit of refused) {
        const answer = await lease(store, resolvedLimit(limit, "u"), { want: 10 });
        expectEqual([answer.granted, answer.unspent], [0, 0], limit.policy.id);
        expectEqual(answer.outcomes[0]?.remaining, 1000, `${limit.policy.id} was not charged`);
      }
      await store.close();
    },
  },

  {
    name: "asks that make no sense name the field",
    async run(open) {
      const { store } = await open();
      const settled = { epoch: 0, spent: 0, kept: 0, returned: 0 };
      for (const [ask, field] of [
        [{ want: -1 }, "want"],
        [{ want: 1.5 }, "want"],
        [{ holdMs: 0 }, "holdMs"],
        [{ holdMs: 25 * 60 * 60 * 1000 }, "holdMs"],
        [{ settled: { ...settled, spent: -1 } }, "settled.spent"],
        [{ settled: { ...settled, kept: Number.NaN } }, "settled.kept"],
        [{ settled: { ...settled, returned: 0.5 } }, "settled.returned"],
        [{ settled: { ...settled, epoch: -1 } }, "settled.epoch"],
      ] as const) {
        const error = await lease(store, tenth("gcra"), ask).catch((one: unknown) => one);
        expectEqual(error instanceof SluiceError && error.code, "invalid_request", field);
        expectEqual((error as SluiceError).problems[0]?.path.join("."), field, "the field is named");
      }
      await store.close();
    },
  },
];
