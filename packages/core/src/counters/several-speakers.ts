import type { CompiledWindow } from "../limits/compiled-limit.ts";
import type { SeveralOutcome } from "./several-takes.ts";
import { isTaken, ReportedOutcome, saysMore, type TakePlan } from "./take-plan.ts";

/** Finds the limit that decides a request of several, as `findDeciding` does, in reused objects. */
export class SeveralSpeakers {
  readonly #found: SeveralOutcome;
  /** The limit that decides so far, and the next one. */
  #speaking: ReportedOutcome;
  #next: ReportedOutcome;

  constructor(window: CompiledWindow) {
    this.#speaking = new ReportedOutcome(window);
    this.#next = new ReportedOutcome(window);
    this.#found = { speaking: 0, outcome: this.#speaking, remaining: 0, atMs: 0 };
  }

  /** All limits of the plan are enforced, and it has been carried out. */
  find(plan: TakePlan, count: number, atMs: number): Readonly<SeveralOutcome> {
    const { steps } = plan;
    const charged = isTaken(plan, 0);
    const found = this.#found;
    let at = this.#speaking.report(steps, 0, charged);
    let { remaining } = this.#speaking;
    found.speaking = 0;
    for (let i = 1; i < count; i++) {
      const next = this.#next;
      at = next.report(steps, at, charged);
      remaining = Math.min(remaining, next.remaining);
      if (!saysMore(next, this.#speaking)) continue;
      this.#next = this.#speaking;
      this.#speaking = next;
      found.speaking = i;
    }
    found.outcome = this.#speaking;
    found.remaining = remaining;
    found.atMs = atMs;
    return found;
  }
}
