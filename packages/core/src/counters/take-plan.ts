import type { WindowVerdict } from "../algorithms/window-verdict.ts";
import type { CompiledWindow } from "../limits/compiled-limit.ts";
import type { LimitOutcome, ResolvedLimit } from "./counter-store.ts";

/** One window of one limit, examined and not yet taken from. */
export interface LookedAt {
  /** The index of its limit in the request. */
  readonly limit: number;
  readonly window: CompiledWindow;
  readonly verdict: WindowVerdict;
  /** How long the subject is still blocked; 0 if it is not. */
  readonly blockedMs: number;
  /** How long this denial blocks the subject. */
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

/** Whether a group is taken: it fits as a whole, and so does the enforced one. */
export function isTaken({ refused }: TakePlan, group: number): boolean {
  return refused.size === 0 || !(refused.has(0) || refused.has(group));
}

/**
 * Lets the most restrictive window report for each limit. A store whose answers wait passes a list made by
 * `untrackedList`.
 */
export function outcomesFromPlan(
  limits: readonly ResolvedLimit[],
  plan: TakePlan,
  charging: boolean,
  outcomes: LimitOutcome[] = [],
): LimitOutcome[] {
  let next = 0;
  for (let i = 0; i < limits.length; i++) {
    const outcome = new ReportedOutcome(plan.steps[next]!.window);
    next = outcome.report(plan.steps, next, charging && isTaken(plan, limits[i]!.group));
    outcomes.push(outcome);
  }
  return outcomes;
}

/** A class rather than a literal, because many of them wait to be read: see decision 0012. */
export class ReportedOutcome implements LimitOutcome {
  fits: LimitOutcome["fits"] = "now";
  window: CompiledWindow;
  remaining = 0;
  windowRemaining = 0;
  retryAfterMs = 0;
  resetAfterMs = 0;
  moreAfterMs = 0;
  queuePosition = 0;
  queueDelayMs = 0;

  constructor(window: CompiledWindow) {
    this.window = window;
  }

  /** Fills in the outcome of one limit, whose steps begin at `first`. Returns where the steps of the next limit begin. */
  report(steps: readonly LookedAt[], first: number, charged: boolean): number {
    let speaking = steps[first]!;
    const { limit } = speaking;
    let { newlyBlockedMs } = speaking;
    let remaining = remainingIn(speaking, charged);
    let moreAfterMs = moreIn(speaking, charged);
    let next = first + 1;
    for (; next < steps.length && steps[next]!.limit === limit; next++) {
      const step = steps[next]!;
      newlyBlockedMs = Math.max(newlyBlockedMs, step.newlyBlockedMs);
      const left = remainingIn(step, charged);
      // The minimum grows when every window at the minimum does.
      if (left === remaining) moreAfterMs = Math.max(moreAfterMs, moreIn(step, charged));
      else if (left < remaining) {
        remaining = left;
        moreAfterMs = moreIn(step, charged);
      }
      if (limitsMore(step, speaking)) speaking = step;
    }
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
    return next;
  }
}

function remainingIn({ verdict }: LookedAt, charged: boolean): number {
  return charged ? verdict.remainingAfter : verdict.remaining;
}

function moreIn({ verdict }: LookedAt, charged: boolean): number {
  return charged ? verdict.moreAfterTakeMs : verdict.moreAfterMs;
}

/** For a denial the window with the longer wait reports, for an allowance the one with the smaller share left. */
function limitsMore(one: LookedAt, other: LookedAt): boolean {
  const a = one.verdict;
  const b = other.verdict;
  if (a.retryAfterMs !== b.retryAfterMs) return a.retryAfterMs > b.retryAfterMs;
  return a.remainingAfter * other.window.capacity < b.remainingAfter * one.window.capacity;
}

/** Whether one limit limits the request more than another, which came before it. */
export function saysMore(one: LimitOutcome, other: LimitOutcome): boolean {
  if (one.retryAfterMs !== other.retryAfterMs) return one.retryAfterMs > other.retryAfterMs;
  return one.windowRemaining * other.window.capacity < other.windowRemaining * one.window.capacity;
}
