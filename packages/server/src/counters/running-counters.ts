import type { CounterStore } from "sluice";
import type { RateLimitsRuntime } from "sluice/policy-text";
import type { MetricsSources } from "../telemetry/metrics.ts";

/** Where counters are, and how they do. */
export interface RunningCounters {
  readonly store: CounterStore;
  /** `memory`, or the servers' address without user and password. */
  readonly where: string;
  /** Figures of counters in memory, or of servers. */
  readonly figures: Pick<MetricsSources, "counters" | "redis">;
  /** How servers stand. Undefined for counters in memory, which are always there. */
  status(): CountersStatus | undefined;
  /** Goes by what policy files and files of certificates say now. Never throws: what cannot be had changes nothing. */
  refresh(runtime: RateLimitsRuntime | undefined): Promise<void>;
  /** Ends what goes on beside the store, which its limiter closes. */
  stop(): void;
}

export interface CountersStatus {
  readonly ready: boolean;
  /** How many servers are known. */
  readonly shards: number;
  /** Servers that are not asked now, the first few of them. */
  readonly away: readonly AwayShard[];
  /** Servers that are asked, and take long to answer, the first few of them. */
  readonly slow: readonly AwayShard[];
}

export interface AwayShard {
  readonly shard: string;
  readonly cell: string | undefined;
  readonly why: string;
}
