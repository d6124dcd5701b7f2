import type { CounterStore, HotKeys } from "sluice";
import type { RateLimitsRuntime } from "sluice/policy-text";
import type { MetricsSources } from "../../observe/telemetry/metrics.ts";

/** Where counters are, and how they do. */
export interface RunningCounters {
  readonly store: CounterStore;
  /** `memory`, or the servers' address without user and password. */
  readonly where: string;
  /** Figures of counters in memory, or of servers and of leases from them. */
  readonly figures: Pick<MetricsSources, "counters" | "redis" | "leases">;
  /** Which counters are asked most, as this process sees it. */
  readonly hotKeys: HotKeys;
  /** How servers stand. Undefined for counters in memory, which are always there. */
  status(): CountersStatus | undefined;
  /** Goes by what policy files and files of certificates say now. Never throws: what cannot be had changes nothing. */
  refresh(runtime: RateLimitsRuntime | undefined): Promise<void>;
  /** Gives back what is leased, within two seconds. Never throws: what cannot be given back ends by itself. */
  drain(): Promise<void>;
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
  /** Undefined where there are none, because they are off. */
  readonly leases?: LeasesStatus | undefined;
}

/** Tokens that were taken from servers, to be spent here. */
export interface LeasesStatus {
  readonly held: number;
  /** Units of cost that they have left. */
  readonly tokens: number;
  /** Leases beyond their time that are still spent, because the servers do not answer; and since how long there are any. */
  readonly stale: number;
  readonly staleForMs: number | undefined;
}

export interface AwayShard {
  readonly shard: string;
  readonly cell: string | undefined;
  readonly why: string;
}
