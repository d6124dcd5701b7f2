import type { RedisCounters } from "@sluice/redis";
import { type CounterStore, type HotKeys, LeasedCounters, type LeasedCountersOptions } from "sluice";
import type { LeaseStats } from "../../observe/telemetry/lease-metrics.ts";
import type { Logger } from "../../observe/telemetry/logger.ts";
import type { Settings } from "../../settings/settings.ts";
import { createLeaseLog } from "./lease-log.ts";
import type { LeasesStatus } from "./running-counters.ts";

/** Counters on servers, with busy ones decided from leases if settings say so. */
export interface RunningLeases {
  /** Closing it gives leases back, and closes the servers' counters. */
  readonly store: CounterStore;
  /** Undefined if leases are off. */
  readonly stats: (() => LeaseStats) | undefined;
  status(): LeasesStatus | undefined;
  /** Checks whether leases have become stale, or no longer are, and logs it. */
  look(): void;
  /** Gives everything back, as far as that can be done in two seconds. */
  drain(): Promise<void>;
}

const drainWithinMs = 2_000;

export interface OpenLeasesOptions {
  readonly centre: RedisCounters;
  readonly settings: Settings;
  readonly log: Pick<Logger, "info" | "warn">;
  readonly hotKeys: HotKeys;
  readonly strainedDecisions: LeasedCountersOptions["strainedDecisions"];
}

export function openLeases({ centre, settings, log, hotKeys, strainedDecisions }: OpenLeasesOptions): RunningLeases {
  const { leaseMs, leaseStaleMs: staleMs, leaseHotPerSecond: hotPerSecond } = settings;
  const leasing = settings.leases === "on";
  const store = new LeasedCounters(centre, { leasing, leaseMs, staleMs, hotPerSecond, hotKeys, strainedDecisions });
  const leaseLog = createLeaseLog(log, staleMs);
  let seen: LeaseStats | undefined;

  /** Read once per turn of the event loop; a page of metrics asks for each. */
  function stats(): LeaseStats {
    if (seen === undefined) {
      seen = store.stats;
      setImmediate(() => {
        seen = undefined;
      });
    }
    return seen;
  }

  return {
    store,
    stats: leasing ? stats : undefined,
    status(): LeasesStatus | undefined {
      if (!leasing) return undefined;
      const { leases: held, tokens, stale } = stats();
      return { held, tokens, stale, staleForMs: stale === 0 ? undefined : leaseLog.staleForMs };
    },
    look(): void {
      if (leasing) leaseLog.look(stats(), centre.ready);
    },
    async drain(): Promise<void> {
      const { leases, granted, spent, lost, returned: returnedBefore } = store.stats;
      if (leases === 0) return;
      const tokens = granted - spent - lost - returnedBefore;
      await store.drain(drainWithinMs);
      const returned = store.stats.returned - returnedBefore;
      if (returned < tokens) log.warn("leases.return_failed", { leases, tokens, returned });
      else log.info("leases.returned", { leases, returned });
    },
  };
}
