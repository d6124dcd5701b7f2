import type { CountersStatus } from "../counters/running-counters.ts";
import { renderStoreTrouble, type StoreReport } from "./store-report.ts";

/** Whether requests should be sent here. */
export interface Readiness {
  /**
   * `ready`, and `degraded`: yes; a counter server is slow, or the policies in force may not be the newest. `unready`: no, the
   * counters cannot be reached. `stopping`: no, for good.
   */
  readonly state: "ready" | "degraded" | "unready" | "stopping";
  /** Why it is not simply ready. */
  readonly detail: string | undefined;
}

export interface ReadinessSources {
  readonly accepting: boolean;
  /** Undefined where counters are in this process. */
  readonly counters: CountersStatus | undefined;
  /** Undefined where there is no policy store. */
  readonly store?: StoreReport | undefined;
}

/** An exchange with a counter server that takes longer makes it a slow one. */
export const slowMs = 2_000;

/**
 * Policies are loaded before anybody is listened to, so what is asked is: are we stopping, can the counters be reached, and do
 * they answer within two seconds? A slow server does not make us unready: checks do not wait for it longer than their
 * deadline, and sending requests elsewhere would not make it quicker. A policy file that was refused does not either, nor a
 * policy store that is away: the last good policies are in force.
 */
export function readinessOf({ accepting, counters, store }: ReadinessSources): Readiness {
  if (!accepting) return { state: "stopping", detail: "the server is stopping; ask another one" };
  if (counters?.ready === false) return { state: "unready", detail: unreachable(counters) };
  if (counters !== undefined && counters.slow.length > 0) return { state: "degraded", detail: tooSlow(counters) };
  const trouble = store && renderStoreTrouble(store);
  return trouble === undefined ? { state: "ready", detail: undefined } : { state: "degraded", detail: trouble };
}

export function isReady({ state }: Readiness): boolean {
  return state === "ready" || state === "degraded";
}

function unreachable({ shards, away, leases }: CountersStatus): string {
  const which = shards === 0 ? "no server that holds them is known yet" : away.map(renderShard).join("; ");
  const all = `checks that are sent all the same are answered by on_failure`;
  const held = leases === undefined || leases.tokens === 0 ? all : `${all}, but for what leases have left`;
  return `the counters cannot be reached (${which}); ${held}`;
}

function tooSlow({ slow }: CountersStatus): string {
  return `counter servers take longer than ${slowMs} ms to answer (${slow.map(renderShard).join("; ")})`;
}

function renderShard({ shard, cell, why }: CountersStatus["away"][number]): string {
  return `${shard}${cell === undefined ? "" : ` of cell ${cell}`}: ${why}`;
}
