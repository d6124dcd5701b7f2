import { counter, type Family, gauge, type Sample } from "./exposition.ts";

/** How usage events fare, at a scrape. */
export interface UsageEventReading {
  readonly sinks: readonly {
    /** Its kind and where it is, without secrets. */
    readonly sink: string;
    readonly waiting: number;
    readonly waitingBytes: number;
    readonly sent: number;
    readonly failed: number;
    readonly dropped: Readonly<Record<string, number>>;
  }[];
  /** Undefined: there is no spill file. */
  readonly spill: { readonly bytes: number; readonly unkept: number; readonly replayed: number } | undefined;
}

export interface UsageEventMetricsSources {
  readonly read: () => UsageEventReading;
  readonly stats: () => { readonly untracked: number; readonly failed: number };
}

/** Metrics of usage events and of the sinks they go to. */
export function usageEventMetrics({ read, stats }: UsageEventMetricsSources): readonly Family[] {
  const bySink = (
    type: "counter" | "gauge",
    name: string,
    help: string,
    value: (sink: UsageEventReading["sinks"][number]) => number,
  ): Family => ({
    ...{ name, help, type, labels: ["sink"] },
    samples: () => read().sinks.map((one) => ({ labels: [one.sink], value: value(one) })),
  });
  const families: Family[] = [
    bySink("gauge", "sluice_usage_events_waiting", "Usage events that wait for a sink.", ({ waiting }) => waiting),
    bySink(
      "gauge",
      "sluice_usage_events_waiting_bytes",
      "About how much memory the usage events that wait for a sink take.",
      ({ waitingBytes }) => waitingBytes,
    ),
    bySink("counter", "sluice_usage_events_sent_total", "Usage events that a sink accepted.", ({ sent }) => sent),
    bySink(
      "counter",
      "sluice_usage_events_failed_sends_total",
      "Batches of usage events that a sink did not accept; most are sent again.",
      ({ failed }) => failed,
    ),
    {
      name: "sluice_usage_events_dropped_total",
      help: "Usage events lost to a sink: too many waited (full), it will not have them (refused), or the server stopped (stopped).",
      type: "counter",
      labels: ["sink", "reason"],
      samples: (): readonly Sample[] =>
        read().sinks.flatMap(({ sink, dropped }) =>
          Object.entries(dropped).map(([reason, value]) => ({ labels: [sink, reason], value })),
        ),
    },
    counter(
      "sluice_usage_events_untracked_decisions_total",
      "Decisions summed up under the subject (other), because too many subjects have a summary.",
      () => stats().untracked,
    ),
    counter(
      "sluice_usage_events_errors_total",
      "Decisions of which no usage event could be made, because of a defect.",
      () => stats().failed,
    ),
  ];
  if (read().spill === undefined) return families;
  return [
    ...families,
    gauge(
      "sluice_usage_events_spill_bytes",
      "Bytes of the spill file of usage events.",
      () => read().spill?.bytes ?? 0,
    ),
    counter(
      "sluice_usage_events_unspilled_total",
      "Usage events that the spill file had no room for, or could not be written to it.",
      () => read().spill?.unkept ?? 0,
    ),
    counter(
      "sluice_usage_events_replayed_total",
      "Usage events read back from the spill file at the start.",
      () => read().spill?.replayed ?? 0,
    ),
  ];
}
