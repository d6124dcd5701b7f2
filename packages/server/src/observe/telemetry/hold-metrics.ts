import type { Family } from "./exposition.ts";
import { Tally } from "./tally.ts";

/** How a call about a hold ended. */
export type HoldOutcome =
  /** An amount is held. */
  | "held"
  /** None is: the request was denied, or no limit applies to it. */
  | "not_held"
  /** A cost was reported, and the rest is still held. */
  | "reported"
  | "extended"
  /** Settled within the amount; beyond it; after it had expired. */
  | "settled"
  | "overdraft"
  | "late"
  /** It had ended before. */
  | "repeated"
  | "unknown"
  /** It failed. */
  | "error";

/** Calls of clients about holds. */
export class HoldMetrics {
  readonly #outcomes = new Tally(1);

  readonly families: readonly Family[] = [
    {
      name: "sluice_hold_requests_total",
      help: "Calls of clients about holds, by how they ended.",
      type: "counter",
      labels: ["outcome"],
      samples: () => this.#outcomes.samples(),
    },
  ];

  count(outcome: HoldOutcome): void {
    this.#outcomes.at(outcome).count += 1;
  }
}
