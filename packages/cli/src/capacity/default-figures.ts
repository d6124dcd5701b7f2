import type { Figures, Transport } from "./capacity-input.ts";

/** Figures that depend on how clients ask. */
export interface TransportFigures {
  readonly server_us_per_check: number;
  readonly client_bytes_per_check: number;
}

/**
 * What docs/benchmarks.md measured: one core of a virtual machine, servers under full load. `grpc` is a call as Envoy makes it.
 * Bytes are by `--measure`.
 */
export const transportFigures: Readonly<Record<Transport, TransportFigures>> = {
  grpc: { server_us_per_check: 9.84, client_bytes_per_check: 273 },
  "grpc-batch": { server_us_per_check: 1.27, client_bytes_per_check: 167 },
  http: { server_us_per_check: 54.86, client_bytes_per_check: 962 },
  resp: { server_us_per_check: 13.32, client_bytes_per_check: 113 },
  "resp-pipeline": { server_us_per_check: 2.33, client_bytes_per_check: 113 },
  library: { server_us_per_check: 0.3, client_bytes_per_check: 0 },
};

export const defaultFigures: Omit<Figures, keyof TransportFigures> = {
  server_us_per_limit: 0.3,
  // Envoy's protocol on Valkey, less the same in memory: 15.16 − 9.84.
  server_us_per_take: 5.3,
  store_us_per_take: 1.9,
  store_us_per_call: 12,
  server_memory_bytes: 512 * 1024 ** 2,
  counter_bytes: 129,
  store_bytes_per_take: 258,
  replication_bytes_per_take: 59,
};
