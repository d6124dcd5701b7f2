import type { MemoryCountersStats } from "sluice/internal";
import type { Family } from "./exposition.ts";

export interface MemoryStats
  extends Pick<
    MemoryCountersStats,
    "counters" | "bytes" | "evictedLive" | "refused" | "clockAnomalies" | "ids" | "idsCutShort"
  > {
  readonly maxCounters: number;
}

/** Metrics of counters in this process's memory. */
export function memoryMetrics(counters: () => MemoryStats): readonly Family[] {
  const one = (
    type: "counter" | "gauge",
    name: string,
    help: string,
    read: (stats: MemoryStats) => number,
  ): Family => ({ name, help, type, labels: [], samples: () => [{ labels: [], value: read(counters()) }] });
  return [
    one("gauge", "sluice_counters", "Counters held in memory.", (stats) => stats.counters),
    one("gauge", "sluice_counters_max", "Most counters that may be held in memory.", ({ maxCounters }) => maxCounters),
    one("gauge", "sluice_counters_bytes", "Bytes that counters take in memory.", ({ bytes }) => bytes),
    one(
      "counter",
      "sluice_counters_evicted_total",
      "Counters in use that were forgotten because memory was full.",
      ({ evictedLive }) => evictedLive,
    ),
    one(
      "counter",
      "sluice_counters_refused_total",
      "Counters of new subjects that were not kept because memory was full of exhausted ones.",
      ({ refused }) => refused,
    ),
    one("gauge", "sluice_request_ids", "Request ids remembered.", ({ ids }) => ids),
    one(
      "counter",
      "sluice_request_ids_cut_short_total",
      "Request ids forgotten before their time because too many were remembered.",
      ({ idsCutShort }) => idsCutShort,
    ),
    one(
      "counter",
      "sluice_clock_anomalies_total",
      "Times the clock stepped back, or the wall clock either way, by more than a minute.",
      ({ clockAnomalies }) => clockAnomalies,
    ),
  ];
}
