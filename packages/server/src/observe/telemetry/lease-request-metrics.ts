import type { Family } from "./exposition.ts";
import { Tally } from "./tally.ts";

/** How a call for a lease ended. */
export type LeaseOutcome =
  /** Units were granted. */
  | "granted"
  /** Nothing was granted: the limit, or its allowance of unspent units, is used up. */
  | "refused"
  /** Nothing was wanted: an earlier grant was settled. */
  | "settled"
  /** Checks like this are decided by servers. */
  | "not_leasable"
  /** It failed. */
  | "error";

/** Lease requests of clients, and the cost they decided. */
export class LeaseRequestMetrics {
  readonly #outcomes = new Tally(1);
  readonly #spent = new Tally(1);

  readonly families: readonly Family[] = [
    {
      name: "sluice_lease_requests_total",
      help: "Calls of clients for leases, by how they ended.",
      type: "counter",
      labels: ["outcome"],
      samples: () => this.#outcomes.samples(),
    },
    {
      name: "sluice_lease_client_spent_total",
      help: "Cost that clients decided by leases and reported, by policy. It is in no other metric of decisions.",
      type: "counter",
      labels: ["policy"],
      samples: () => this.#spent.samples(),
    },
  ];

  count(outcome: LeaseOutcome, policy: string | undefined, spent: number): void {
    this.#outcomes.at(outcome).count += 1;
    if (spent > 0) this.#spent.at(policy ?? "none").count += spent;
  }
}
