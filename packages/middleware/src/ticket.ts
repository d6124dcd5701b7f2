import { type CheckRequest, type Decision, type Hold, SluiceError } from "sluice";
import { maxCost } from "sluice/internal";
import type { AskedLimiter } from "./limits.ts";

/** What the handler of an admitted request can do about its limits. */
export interface Ticket {
  readonly decision: Decision;
  /** What is held for the request, if the option `hold` is set: report its cost by `settle`, or as it grows by `commit`. */
  readonly hold?: Hold | undefined;
  /**
   * Takes more, unconditionally: the cost that the answer turned out to have, rounded up. 0 charges nothing. Rejects if it
   * cannot be charged.
   */
  charge(cost: number): Promise<void>;
  /** Gives the charge back, once. False if there was nothing to give back, or it was too late. */
  giveBack(): Promise<boolean>;
}

/** Debt beyond one full limit is not recorded, so more charges would have no effect. */
const mostCharges = 64;

export class AdmittedRequest implements Ticket {
  readonly decision: Decision;
  readonly hold: Hold | undefined;
  readonly #limiter: AskedLimiter;
  readonly #asked: CheckRequest;

  constructor(limiter: AskedLimiter, asked: CheckRequest, decision: Decision, hold?: Hold) {
    this.#limiter = limiter;
    this.#asked = asked;
    this.decision = decision;
    this.hold = hold;
  }

  async charge(cost: number): Promise<void> {
    const { domain, dimensions, policies } = this.#asked;
    if (!Number.isFinite(cost) || cost < 0) {
      const message = `must be a non-negative number, not ${cost}`;
      throw new SluiceError("invalid_request", `cost ${message}`, [{ path: ["cost"], message }]);
    }
    let left = Math.ceil(cost);
    for (let i = 0; i < mostCharges && left > 0; i++) {
      await this.#limiter.charge({ domain, dimensions, policies, cost: Math.min(left, maxCost) });
      left -= maxCost;
    }
  }

  async giveBack(): Promise<boolean> {
    const { receipt } = this.decision;
    return receipt === undefined ? false : this.#limiter.give(receipt);
  }
}
