import type { Logger } from "../../observe/telemetry/logger.ts";

/** How leases stand, as far as is told of them. */
export interface LeasesSeen {
  /** Leases held, and units of cost that they have left. */
  readonly leases: number;
  readonly tokens: number;
  /** Those beyond their time that are still spent, because the counters do not answer. */
  readonly stale: number;
}

/** Of counters that answer: for so long no lease is stale until that is told to be over. Where some answers are lost there are now and then. */
const calmForMs = 3_000;

/** Tells when leases begin to be spent beyond their time, and when that has ended: once each, however often it looks. */
export interface LeaseLog {
  look(seen: LeasesSeen, countersReady: boolean): void;
  /** For how long leases have been stale, now and then; undefined where that is over. */
  readonly staleForMs: number | undefined;
}

export function createLeaseLog(
  log: Pick<Logger, "info" | "warn">,
  budgetMs: number,
  nowMs: () => number = () => performance.now(),
): LeaseLog {
  let staleSinceMs: number | undefined;
  let calmSinceMs: number | undefined;
  /** The budget ran out, and the counters have not been back since: what is stale now belongs to the same outage. */
  let over = false;

  function begin({ leases, tokens, stale }: LeasesSeen): void {
    staleSinceMs = nowMs();
    log.warn("leases.spent_beyond_time", { leases, stale, tokens, budgetMs });
  }

  function end(afterMs: number, ready: boolean): void {
    staleSinceMs = undefined;
    calmSinceMs = undefined;
    over = !ready;
    if (ready) log.info("leases.renewed", { afterMs });
    else log.warn("leases.used_up", { afterMs });
  }

  return {
    look(seen, ready): void {
      if (ready) over = false;
      if (seen.stale > 0) {
        calmSinceMs = undefined;
        if (staleSinceMs === undefined && !over) begin(seen);
        return;
      }
      if (staleSinceMs === undefined) return;
      calmSinceMs ??= nowMs();
      if (!ready || nowMs() - calmSinceMs >= calmForMs) end(Math.round(calmSinceMs - staleSinceMs), ready);
    },
    get staleForMs(): number | undefined {
      return staleSinceMs === undefined ? undefined : nowMs() - staleSinceMs;
    },
  };
}
