import type { Logger } from "../../observe/telemetry/logger.ts";

/** The state of leases, as far as it is logged. */
export interface LeasesSeen {
  /** Leases held, and units of cost that they have left. */
  readonly leases: number;
  readonly tokens: number;
  /** Leases past their time that are still spent, because the counters do not answer. */
  readonly stale: number;
}

/**
 * How long no lease may be stale before that is logged as over. If answers get lost now and then, some are stale now
 * and then.
 */
const calmForMs = 3_000;

/** Logs when leases begin to be spent past their time, and when that has ended: once each, however often it looks. */
export interface LeaseLog {
  look(seen: LeasesSeen, countersReady: boolean): void;
  /** How long leases have been stale, at least now and then; undefined if that is over. */
  readonly staleForMs: number | undefined;
}

export function createLeaseLog(
  log: Pick<Logger, "info" | "warn">,
  budgetMs: number,
  nowMs: () => number = () => performance.now(),
): LeaseLog {
  let staleSinceMs: number | undefined;
  let calmSinceMs: number | undefined;
  /**
   * The budget ran out, and the counters have not been back since: leases that are stale now belong to the same outage.
   */
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
