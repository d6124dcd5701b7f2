/** What a fleet needs. Sums are of all regions, at the peak unless a name says otherwise. Shares are from 0 to 1. */
export interface CapacityPlan {
  readonly peak: PeakLoad;
  readonly servers: ServerPlan;
  readonly store: StorePlan;
  readonly network: NetworkPlan;
  readonly money: MoneyPlan;
  readonly whale: WhalePlan;
  readonly availability: AvailabilityPlan;
}

export interface PeakLoad {
  readonly checks_per_second: number;
  readonly limits_per_second: number;
  readonly leased_limits_per_second: number;
  readonly lease_calls_per_second: number;
  /** What the store decides: limits without a lease, and leases. */
  readonly takes_per_second: number;
}

export interface ServerPlan {
  readonly cpu_us_per_check: number;
  /** Busy all the time. */
  readonly cores: number;
  readonly pods: number;
  readonly paid_cores: number;
  /** With all zones, and with one lost. */
  readonly cpu_share: number;
  readonly cpu_share_without_a_zone: number;
  readonly memory_bytes: number;
}

export interface StorePlan {
  /** How many takes travel in one call. */
  readonly takes_per_call: number;
  readonly cpu_us_per_take: number;
  readonly cores: number;
  /** Primaries. */
  readonly shards: number;
  readonly bound_by: "cpu" | "memory" | "the smallest cluster";
  readonly lanes: number;
  readonly busiest_shard_cpu_share: number;
  readonly busiest_shard_memory_bytes: number;
  /** Primaries and replicas. */
  readonly nodes: number;
  readonly counters: number;
  /** With replicas, and half as much again for growth and fragmentation. */
  readonly memory_bytes: number;
}

/** Bits of both directions. */
export interface NetworkPlan {
  readonly client_bits_per_second: number;
  readonly store_bits_per_second: number;
  readonly replication_bits_per_second: number;
  /** Of these, what leaves a zone. */
  readonly between_zones_bits_per_second: number;
}

/** By the average traffic. */
export interface MoneyPlan {
  readonly servers_month: number;
  readonly store_month: number;
  readonly network_month: number;
  readonly fixed_month: number;
  readonly month: number;
  readonly per_million_checks: number;
}

export interface WhalePlan {
  /** How much a limit may admit beyond itself, in any interval and with any number of nodes. */
  readonly overshoot: number;
  /** How many units a process is granted at a time. Below 1: the store decides. */
  readonly grant: number;
  readonly calls_per_second: number;
  /** Of the target of one shard, which all calls about one counter must fit into. */
  readonly shard_share: number;
}

/** Shares of all requests. */
export interface AvailabilityPlan {
  readonly open: Outcomes;
  readonly closed: Outcomes;
}

export interface Outcomes {
  /** Answered as the limits say, or let through without them. */
  readonly passed: number;
  /** Failed, although within their limits: what users see as an outage. */
  readonly failed: number;
  /** Let through, although beyond their limits. */
  readonly unlimited: number;
}
