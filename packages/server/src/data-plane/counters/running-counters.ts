import type { CounterStore, HotKeys } from "sluice";
import type { RateLimitsRuntime } from "sluice/policy-text";
import type { MetricsSources } from "../../observe/telemetry/metrics.ts";

/** Where counters are, and their state. */
export interface RunningCounters {
  readonly store: CounterStore;
  /** What decides now, if `store` only passes checks on to it. */
  readonly deciding?: CounterStore | undefined;
  /** `memory`, or the servers' address without user and password. */
  readonly where: string;
  /** Statistics of counters in memory, or of servers and of leases from them. */
  readonly stats: Pick<MetricsSources, "counters" | "redis" | "leases" | "strong">;
  /** Which counters are asked for most in this process. */
  readonly hotKeys: HotKeys;
  /** The state of the servers. Undefined for counters in memory, which are always available. */
  status(): CountersStatus | undefined;
  /** The state of the database for policies with `counters: strong`; undefined until it is used. */
  strong?(): StrongReport | undefined;
  /** Applies the current policy files and certificates. Never throws: what cannot be applied changes nothing. */
  refresh(runtime: RateLimitsRuntime | undefined): Promise<void>;
  /** Gives leases back, within two seconds. Never throws: what cannot be given back expires. */
  drain(): Promise<void>;
  /** Ends the periodic work. The limiter closes the store itself. */
  stop(): void;
}

export interface CountersStatus {
  readonly ready: boolean;
  /** How many servers are known. */
  readonly shards: number;
  /** Servers that are not asked now, the first few of them. */
  readonly away: readonly AwayShard[];
  /** Servers that answer slowly, the first few of them. */
  readonly slow: readonly AwayShard[];
  /** Undefined if leases are off. */
  readonly leases?: LeasesStatus | undefined;
}

export interface StrongReport {
  /** Without user and password. */
  readonly at: string;
  readonly breaker: "closed" | "open" | "half_open";
  readonly waiting: number;
  readonly calls: number;
  readonly transactions: number;
  readonly failedTransactions: number;
}

/** Tokens taken from servers, to be spent here. */
export interface LeasesStatus {
  readonly held: number;
  /** Units of cost that they have left. */
  readonly tokens: number;
  /**
   * Leases past their time that are still spent, because the servers do not answer; and for how long there have been
   * any.
   */
  readonly stale: number;
  readonly staleForMs: number | undefined;
}

export interface AwayShard {
  readonly shard: string;
  readonly cell: string | undefined;
  readonly why: string;
}
