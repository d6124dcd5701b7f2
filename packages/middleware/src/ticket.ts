import { type CheckRequest, type Decision, maxCost, SluiceError } from "sluice";
import type { AskedLimiter } from "./limits.ts";

/** What a request that was let in can still do about its limits. */
export interface Ticket {
  readonly decision: Decision;
  /**
   * Takes more, unconditionally: what the answer turned out to cost, rounded up. 0 charges nothing. Rejects when it cannot
   * be charged.
   */
  charge(cost: number): Promise<void>;
  /** Gives the take back, once. False when there was nothing to give back, or it was too late. */
  giveBack(): Promise<boolean>;
}

/** What is beyond one capacity of debt is not remembered, so there is no use in going on for long. */
const mostCharges = 64;

export class AdmittedRequest implements Ticket {
  readonly decision: Decision;
  readonly #limiter: AskedLimiter;
  readonly #asked: CheckRequest;

  constructor(limiter: AskedLimiter, asked: CheckRequest, decision: Decision) {
    this.#limiter = limiter;
    this.#asked = asked;
    this.decision = decision;
  }

  async charge(cost: number): Promise<void> {
    const { domain, dimensions, policies } = this.#asked;
    if (!Number.isFinite(cost) || cost < 0) {
      const message = `must be a number that is not negative, not ${cost}`;
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
