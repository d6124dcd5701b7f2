import type { Clock } from "../clock.ts";
import type { Decision } from "../decision/decision.ts";
import { forcedDecision } from "../decision/uncounted-decision.ts";
import type { ForcedDecisions } from "../limiter.ts";
import type { CheckRequest } from "../request/check-request.ts";

/** The kill switch: while it is on, every check gets the same decision, whatever policies and counters say. */
export class ForcedChecks {
  readonly #clock: Clock;
  #forced: (ForcedDecisions & { readonly endsMs: number }) | undefined;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Undefined gives decisions back to the policies. */
  use(forced: ForcedDecisions | undefined): void {
    const leftMs = (forced?.untilMs ?? 0) - this.#clock.epochMs();
    this.#forced = forced === undefined ? undefined : { ...forced, endsMs: this.#clock.nowMs() + leftMs };
  }

  /** Undefined as soon as it has expired. */
  get current(): ForcedDecisions | undefined {
    if (this.#forced === undefined) return undefined;
    const { mode, untilMs, endsMs } = this.#forced;
    // By the wall clock or by the steady one, whichever comes first.
    if (this.#clock.epochMs() < untilMs && this.#clock.nowMs() < endsMs) return { mode, untilMs };
    this.#forced = undefined;
    return undefined;
  }

  /** Undefined if policies decide. */
  decide(request: CheckRequest): Decision | undefined {
    const forced = this.#forced === undefined ? undefined : this.current;
    return forced && forcedDecision(request, forced, this.#clock.epochMs());
  }
}
