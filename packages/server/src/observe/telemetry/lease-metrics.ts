import type { LeasedCountersStats } from "sluice/internal";
import { type Family, gauge } from "./exposition.ts";

export type LeaseStats = LeasedCountersStats;

/** Metrics of tokens taken from counter servers, to be spent here. */
export function leaseMetrics(leases: () => LeaseStats): readonly Family[] {
  const by = (
    name: string,
    help: string,
    label: string,
    read: (stats: LeaseStats) => Readonly<Record<string, number>>,
  ): Family => ({
    name,
    help,
    type: "counter",
    labels: [label],
    samples: () => Object.entries(read(leases())).map(([word, value]) => ({ labels: [word], value })),
  });
  return [
    gauge("sluice_leases", "Leases held now.", () => leases().leases),
    gauge(
      "sluice_leases_stale",
      "Leases beyond their time that are still spent, because the counters do not answer.",
      () => leases().stale,
    ),
    gauge("sluice_lease_tokens_in_hand", "Units of cost that leases have left.", () => leases().tokens),
    by(
      "sluice_lease_decisions_total",
      "Decisions by where they were made: from a lease, by a remembered denial, or by the counters.",
      "by",
      ({ local, denials, central }) => ({ lease: local, denial: denials, centre: central }),
    ),
    by(
      "sluice_lease_fetches_total",
      "Lease requests to the counters: granted, refused, or failed.",
      "outcome",
      ({ fetches, refused, failed }) => ({ granted: fetches - refused - failed, refused, failed }),
    ),
    by(
      "sluice_lease_tokens_total",
      "Units of cost that were granted, and what became of them: spent, returned, or lost.",
      "outcome",
      ({ granted, spent, returned, lost }) => ({ granted, spent, returned, lost }),
    ),
  ];
}
