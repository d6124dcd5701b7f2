import type { MemoryCountersStats } from "sluice/internal";
import { counter, type Family, gauge } from "./exposition.ts";

export interface MemoryStats
  extends Pick<
    MemoryCountersStats,
    "counters" | "bytes" | "evictedLive" | "refused" | "clockAnomalies" | "ids" | "idsCutShort"
  > {
  readonly maxCounters: number;
}

/** Metrics of counters in this process's memory. */
export function memoryMetrics(counters: () => MemoryStats): readonly Family[] {
  return [
    gauge("sluice_counters", "Counters held in memory.", () => counters().counters),
    gauge("sluice_counters_max", "Most counters that may be held in memory.", () => counters().maxCounters),
    gauge("sluice_counters_bytes", "Bytes that counters take in memory.", () => counters().bytes),
    counter(
      "sluice_counters_evicted_total",
      "Counters in use that were forgotten because memory was full.",
      () => counters().evictedLive,
    ),
    counter(
      "sluice_counters_refused_total",
      "Counters of new subjects that were not kept because memory was full of exhausted ones.",
      () => counters().refused,
    ),
    gauge("sluice_request_ids", "Request ids remembered.", () => counters().ids),
    counter(
      "sluice_request_ids_cut_short_total",
      "Request ids forgotten before their time because too many were remembered.",
      () => counters().idsCutShort,
    ),
    counter(
      "sluice_clock_anomalies_total",
      "Times the clock stepped back, or the wall clock either way, by more than a minute.",
      () => counters().clockAnomalies,
    ),
  ];
}
