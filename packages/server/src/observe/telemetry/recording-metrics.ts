import { counter, type Family, gauge } from "./exposition.ts";

/** What was recorded since the start of the process, at a scrape. */
export interface RecordingFigures {
  readonly active: boolean;
  readonly requests: number;
  readonly dropped: number;
  readonly leftOut: number;
  readonly failed: number;
}

/** Metrics of recordings of decided requests. */
export function recordingMetrics(read: () => RecordingFigures): readonly Family[] {
  return [
    gauge("sluice_recording", "1 while decided requests are recorded, else 0.", () => Number(read().active)),
    counter("sluice_recorded_requests_total", "Requests written to recordings.", () => read().requests),
    counter(
      "sluice_recording_dropped_requests_total",
      "Requests that a recording lost, because they came more quickly than they could be written.",
      () => read().dropped,
    ),
    counter(
      "sluice_recording_left_out_requests_total",
      "Requests that a recording left out: outside its sample, or of no use to a replay.",
      () => read().leftOut,
    ),
    counter(
      "sluice_recordings_failed_total",
      "Recordings that ended because their file could not be written.",
      () => read().failed,
    ),
  ];
}
