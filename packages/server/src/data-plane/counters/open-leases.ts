import type { RedisCounters } from "@sluice/redis";
import { type CounterStore, type HotKeys, LeasedCounters } from "sluice";
import type { LeaseFigures } from "../../observe/telemetry/lease-families.ts";
import type { Logger } from "../../observe/telemetry/logger.ts";
import type { Settings } from "../../settings/settings.ts";
import { createLeaseLog } from "./lease-log.ts";
import type { LeasesStatus } from "./running-counters.ts";

/** Counters on servers as checks are decided by them: busy ones from leases, where settings want that. */
export interface RunningLeases {
  /** Closing it gives leases back, and closes the servers' counters. */
  readonly store: CounterStore;
  /** Undefined where leases are off. */
  readonly figures: (() => LeaseFigures) | undefined;
  status(): LeasesStatus | undefined;
  /** Looks whether leases have gone stale, or are so no more, and tells. */
  look(): void;
  /** Gives everything back, as far as that can be done in two seconds. */
  drain(): Promise<void>;
}

const drainWithinMs = 2_000;

export function openLeases(
  centre: RedisCounters,
  settings: Settings,
  log: Pick<Logger, "info" | "warn">,
  hotKeys: HotKeys,
): RunningLeases {
  const { leaseMs, leaseStaleMs: staleMs, leaseHotPerSecond: hotPerSecond } = settings;
  const leasing = settings.leases === "on";
  const store = new LeasedCounters(centre, { leasing, leaseMs, staleMs, hotPerSecond, hotKeys });
  const leaseLog = createLeaseLog(log, staleMs);
  let seen: LeaseFigures | undefined;

  /** Read once in a turn of the event loop; a page of metrics asks for each. */
  function figures(): LeaseFigures {
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
    figures: leasing ? figures : undefined,
    status(): LeasesStatus | undefined {
      if (!leasing) return undefined;
      const { leases: held, tokens, stale } = figures();
      return { held, tokens, stale, staleForMs: stale === 0 ? undefined : leaseLog.staleForMs };
    },
    look(): void {
      if (leasing) leaseLog.look(figures(), centre.ready);
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
