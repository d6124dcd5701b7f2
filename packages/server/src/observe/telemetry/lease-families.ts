import type { LeasedCountersStats } from "sluice";
import type { Family } from "./exposition.ts";

export type LeaseFigures = LeasedCountersStats;

/** Of tokens that were taken from counter servers, to be spent here. */
export function leaseFamilies(leases: () => LeaseFigures): readonly Family[] {
  const one = (name: string, help: string, read: (figures: LeaseFigures) => number): Family => ({
    name,
    help,
    type: "gauge",
    labels: [],
    samples: () => [{ labels: [], value: read(leases()) }],
  });
  const by = (
    name: string,
    help: string,
    label: string,
    read: (figures: LeaseFigures) => Readonly<Record<string, number>>,
  ): Family => ({
    name,
    help,
    type: "counter",
    labels: [label],
    samples: () => Object.entries(read(leases())).map(([word, value]) => ({ labels: [word], value })),
  });
  return [
    one("sluice_leases", "Leases held now.", (figures) => figures.leases),
    one(
      "sluice_leases_stale",
      "Leases beyond their time that are still spent, because the counters do not answer.",
      ({ stale }) => stale,
    ),
    one("sluice_lease_tokens_in_hand", "Units of cost that leases have left.", ({ tokens }) => tokens),
    by(
      "sluice_lease_decisions_total",
      "Decisions by where they were made: from a lease, by a denial that is remembered, or by the counters.",
      "by",
      ({ local, denials, central }) => ({ lease: local, denial: denials, centre: central }),
    ),
    by(
      "sluice_lease_fetches_total",
      "Times that the counters were asked for a lease: granted, refused, or failed.",
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
