import type { Degradation } from "@sluice/protocol/http";
import { slowMs } from "../counters/redis-status.ts";
import type { CountersStatus } from "../counters/running-counters.ts";
import { renderStoreTrouble, type StoreReport } from "./store-report.ts";

/** Whether requests should be sent here. */
export interface Readiness {
  /** `ready` and `degraded`: yes. `stopping`: no, for good. */
  readonly state: "ready" | "degraded" | "stopping";
  /** What is wrong, in stable words that name no host. Empty unless the state is `degraded`. */
  readonly degraded: readonly Degradation[];
  /** The same for operators, with hosts and reasons. */
  readonly detail: string | undefined;
  /** Whether every server that holds counters is connected and asked. True for counters in this process. */
  readonly countersReachable: boolean;
}

export interface ReadinessSources {
  readonly accepting: boolean;
  /** Undefined if counters are in this process. */
  readonly counters: CountersStatus | undefined;
  /** Undefined without a policy store. */
  readonly store?: StoreReport | undefined;
}

/**
 * Ready means configured, and able to answer as policies say. Policies are loaded before the server listens, and
 * without counters `on_failure` answers: a probe that fails then would take every server out at once, and no policy
 * could answer. So only a stopping server is not ready; everything else is reported as degraded.
 */
export function decideReadiness({ accepting, counters, store }: ReadinessSources): Readiness {
  const countersReachable = counters?.ready !== false;
  if (!accepting) {
    const detail = "the server is stopping; ask another one";
    return { state: "stopping", degraded: [], detail, countersReachable };
  }
  const found = new Map<Degradation, string>();
  if (counters?.ready === false) found.set("counters_unavailable", unreachable(counters));
  if (counters !== undefined && counters.slow.length > 0) found.set("counters_slow", tooSlow(counters));
  const trouble = store && renderStoreTrouble(store);
  if (trouble !== undefined) found.set("policy_store", trouble);
  return {
    state: found.size === 0 ? "ready" : "degraded",
    degraded: [...found.keys()],
    detail: found.size === 0 ? undefined : [...found.values()].join("; "),
    countersReachable,
  };
}

/** With `strict` a server is ready only while it also reaches every server that holds its counters. */
export function isReady({ state, countersReachable }: Readiness, { strict }: { readonly strict: boolean }): boolean {
  return state !== "stopping" && (countersReachable || !strict);
}

function unreachable({ shards, away, leases }: CountersStatus): string {
  const which = shards === 0 ? "no server that holds them is known yet" : away.map(renderShard).join("; ");
  const held = leases === undefined || leases.tokens === 0 ? "" : ", except for what leases have left";
  return `the counters cannot be reached (${which}); on_failure answers for them${held}`;
}

function tooSlow({ slow }: CountersStatus): string {
  return `counter servers take longer than ${slowMs} ms to answer (${slow.map(renderShard).join("; ")})`;
}

function renderShard({ shard, cell, why }: CountersStatus["away"][number]): string {
  return `${shard}${cell === undefined ? "" : ` of cell ${cell}`}: ${why}`;
}
