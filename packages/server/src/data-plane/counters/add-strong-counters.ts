import { SqlCounters, withStrongCounters } from "@sluice/sql/counters";
import type { CounterStore } from "sluice";
import type { Logger } from "../../observe/telemetry/logger.ts";
import { findPasswordFile } from "../../settings/password-files.ts";
import type { Settings } from "../../settings/settings.ts";
import type { CountersStatus, RunningCounters, StrongReport } from "./running-counters.ts";

/**
 * The same counters, with a database for policies with `counters: strong`. It is opened when such a policy comes into
 * force: until then the others are asked as if they were alone.
 */
export function addStrongCounters(counters: RunningCounters, settings: Settings, log: Logger): RunningCounters {
  const url = settings.strongCounters ?? settings.store;
  if (url === undefined) return counters;
  // A password that is not in the address is the policy store's.
  const readPassword =
    settings.strongCounters === undefined ? findPasswordFile("storePasswordFile", settings) : undefined;
  const strong = new SqlCounters({
    ...{ url, readPassword: readPassword?.read, deadlineMs: settings.strongDeadlineMs },
    applicationName: `sluice counters ${settings.nodeName ?? ""}`.trimEnd(),
    breaker: {
      onChange(state, why): void {
        if (state === "open") log.error("strong.breaker_opened", { why, failure: strong.lastFailure });
        else if (state === "closed") log.info("strong.breaker_closed", { why });
      },
    },
  });
  const store = withStrongCounters(counters.store, strong);
  return {
    store,
    hotKeys: counters.hotKeys,
    stats: { ...counters.stats, strong: () => strong.stats },
    get deciding(): CounterStore | undefined {
      return store.local ? counters.store : undefined;
    },
    get where(): string {
      return counters.where;
    },
    status: () => addTrouble(counters.status(), strong),
    strong: () => reportStrong(strong),
    refresh: (runtime) => counters.refresh(runtime),
    drain: () => counters.drain(),
    stop: () => counters.stop(),
  };
}

function reportStrong({ where: at, stats }: SqlCounters): StrongReport | undefined {
  if (at === undefined) return undefined;
  const { state: breaker, waiting, actions: calls, transactions, failures: failedTransactions } = stats;
  return { at, breaker, waiting, calls, transactions, failedTransactions };
}

/** A database that does not answer is one more server that is not asked now. */
function addTrouble(status: CountersStatus | undefined, { stats }: SqlCounters): CountersStatus | undefined {
  if (stats.state === "closed") return status;
  const { shards, away, slow, leases } = status ?? { shards: 0, away: [], slow: [] };
  const database = { shard: "the database of strong counters", cell: undefined, why: "its breaker is open" };
  return { ready: false, shards: shards + 1, away: [...away, database], slow, leases };
}
