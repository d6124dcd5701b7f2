/** How clients ask: each costs a server a different amount of CPU time. `library`: the application decides in its own process. */
export const transports = ["grpc", "grpc-batch", "http", "resp", "resp-pipeline", "library"] as const;
export type Transport = (typeof transports)[number];

/** The traffic of all regions together. Shares are from 0 to 1. */
export interface Demand {
  /** On average over a month. */
  readonly checks_per_second: number;
  /** How many times the average the peak is. */
  readonly peak_factor: number;
  readonly limits_per_check: number;
  readonly windows_per_limit: number;
  /** Distinct subjects of all limits that are seen within the longest window. */
  readonly subjects: number;
  /** Of all limits that are decided: those that a node decides from a lease. */
  readonly lease_share: number;
  readonly decisions_per_lease: number;
  readonly allowed_share: number;
}

/** The busiest subject. */
export interface Whale {
  readonly checks_per_second: number;
  /** Of its smallest window. */
  readonly limit: number;
  readonly max_overshoot: number;
  readonly lease_seconds: number;
}

export interface Layout {
  readonly transport: Transport;
  readonly regions: number;
  readonly zones: number;
  /** How busy a core may be at the peak. */
  readonly target_cpu: number;
  readonly cores_per_pod: number;
  /** Pods of all regions, if their number is given. 0: as many as the traffic needs. */
  readonly pods: number;
  readonly shard_memory_bytes: number;
  readonly cores_per_shard: number;
  readonly replicas: number;
  /** Of a cluster: `--redis-lanes`. */
  readonly lanes: number;
  readonly round_trip_seconds: number;
}

/** What was measured, or is assumed, about one operation. */
export interface Figures {
  /** CPU time of a server for a check of one limit, with its counters in memory. */
  readonly server_us_per_check: number;
  /** More for each further limit of a check. */
  readonly server_us_per_limit: number;
  /** More for each limit that the store decides. */
  readonly server_us_per_take: number;
  /** CPU time of the store for each window of a take that travels with others. */
  readonly store_us_per_take: number;
  /** More for each call, whatever it carries. */
  readonly store_us_per_call: number;
  readonly server_memory_bytes: number;
  /** Of the store: a window of a subject, with its key. */
  readonly counter_bytes: number;
  /** Both directions, without the headers of TCP and IP. */
  readonly client_bytes_per_check: number;
  readonly store_bytes_per_take: number;
  /** From a primary to one replica. */
  readonly replication_bytes_per_take: number;
}

/** In one currency, such as dollars. */
export interface Prices {
  readonly core_month: number;
  readonly gib_month: number;
  /** A gigabyte (10⁹ bytes) that leaves one zone for another, both sides together. */
  readonly zone_gb: number;
  /** What does not depend on the traffic: policy store, control plane, observability. */
  readonly fixed_month: number;
}

/** Shares of time. */
export interface Uptimes {
  readonly gateway: number;
  readonly limiter: number;
}

export interface CapacityInput {
  readonly demand: Demand;
  readonly whale: Whale;
  readonly layout: Layout;
  readonly figures: Figures;
  readonly prices: Prices;
  readonly uptimes: Uptimes;
}
