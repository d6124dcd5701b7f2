import type { WindowVerdict } from "../algorithms/window-verdict.ts";
import type { CompiledWindow } from "../limits/compiled-limit.ts";
import type { LimitOutcome, ResolvedLimit } from "./counter-store.ts";

/** One window of one limit, looked at and not yet taken. */
export interface LookedAt {
  /** Which of the request's limits it belongs to. */
  readonly limit: number;
  readonly window: CompiledWindow;
  readonly verdict: WindowVerdict;
  /** How long the subject is still blocked; 0 where it is not. */
  readonly blockedMs: number;
  /** How long it is blocked from now on, because of this denial. */
  newlyBlockedMs: number;
}

/** Every window of a request at one instant, before anything is taken. */
export interface TakePlan<Step extends LookedAt = LookedAt> {
  readonly steps: readonly Step[];
  /** Groups of limits (see `ResolvedLimit.group`) in which something does not fit. */
  readonly refused: ReadonlySet<number>;
}

export function fits(step: LookedAt): boolean {
  return step.verdict.fits === "now" && step.blockedMs === 0;
}

/** Whether a group is taken: it fits as a whole, and so does what is enforced. */
export function isTaken({ refused }: TakePlan, group: number): boolean {
  return refused.size === 0 || !(refused.has(0) || refused.has(group));
}

/** Lets the window that limits most speak for each limit. A store whose answers wait gives a list by `untrackedList`. */
export function outcomesFromPlan(
  limits: readonly ResolvedLimit[],
  plan: TakePlan,
  charging: boolean,
  outcomes: LimitOutcome[] = [],
): LimitOutcome[] {
  const { steps } = plan;
  let next = 0;
  for (let i = 0; i < limits.length; i++) {
    const charged = charging && isTaken(plan, limits[i]!.group);
    let speaking = steps[next++]!;
    let { newlyBlockedMs } = speaking;
    let remaining = remainingIn(speaking, charged);
    let moreAfterMs = moreIn(speaking, charged);
    for (; next < steps.length && steps[next]!.limit === i; next++) {
      const step = steps[next]!;
      newlyBlockedMs = Math.max(newlyBlockedMs, step.newlyBlockedMs);
      const left = remainingIn(step, charged);
      // The least of all grows when every window that has no more than that does.
      if (left === remaining) moreAfterMs = Math.max(moreAfterMs, moreIn(step, charged));
      else if (left < remaining) {
        remaining = left;
        moreAfterMs = moreIn(step, charged);
      }
      if (limitsMore(step, speaking)) speaking = step;
    }
    outcomes.push(new SpokenOutcome(speaking, remaining, moreAfterMs, newlyBlockedMs, charged));
  }
  return outcomes;
}

/** A class and no literal, because many of them wait to be told: see decision 0012. */
class SpokenOutcome implements LimitOutcome {
  readonly fits: LimitOutcome["fits"];
  readonly window: CompiledWindow;
  readonly remaining: number;
  readonly windowRemaining: number;
  readonly retryAfterMs: number;
  readonly resetAfterMs: number;
  readonly moreAfterMs: number;
  readonly queuePosition: number;
  readonly queueDelayMs: number;

  constructor(speaking: LookedAt, remaining: number, moreAfterMs: number, newlyBlockedMs: number, charged: boolean) {
    const { window, verdict, blockedMs } = speaking;
    this.fits = verdict.fits === "never" ? "never" : blockedMs > 0 ? "blocked" : verdict.fits;
    this.window = window;
    this.remaining = blockedMs > 0 || newlyBlockedMs > 0 ? 0 : remaining;
    this.windowRemaining = remainingIn(speaking, charged);
    this.retryAfterMs = Math.max(verdict.retryAfterMs, blockedMs, newlyBlockedMs);
    this.resetAfterMs = charged ? verdict.resetAfterTakeMs : verdict.resetAfterMs;
    this.moreAfterMs =
      this.fits === "later" || this.fits === "blocked"
        ? this.retryAfterMs
        : Math.max(blockedMs > 0 && remaining > 0 ? 0 : moreAfterMs, blockedMs);
    this.queuePosition = verdict.queuePosition;
    this.queueDelayMs = verdict.queueDelayMs;
  }
}

function remainingIn({ verdict }: LookedAt, charged: boolean): number {
  return charged ? verdict.remainingAfter : verdict.remaining;
}

function moreIn({ verdict }: LookedAt, charged: boolean): number {
  return charged ? verdict.moreAfterTakeMs : verdict.moreAfterMs;
}

/** For a denial the window with the longer wait speaks, for an allowance the one with the smaller share left. */
function limitsMore(one: LookedAt, other: LookedAt): boolean {
  const [a, b] = [one.verdict, other.verdict];
  if (a.retryAfterMs !== b.retryAfterMs) return a.retryAfterMs > b.retryAfterMs;
  return a.remainingAfter * other.window.capacity < b.remainingAfter * one.window.capacity;
}
