import type { Fit, LimitOutcome, LimitRecord, ResolvedLimit } from "../counters/counter-store.ts";
import { saysMore } from "../counters/take-plan.ts";
import type { CompiledWindow } from "../limits/compiled-limit.ts";
import type { DecisionReason, LimitDecision, ShadowDenial } from "./decision.ts";
import { describeDistinct } from "./describe-distinct.ts";

/**
 * The limit that decides the whole request: for a denial the one with the longest wait, for an allowance the one with
 * the smallest share left. Undefined if no enforced limit applied.
 */
export function findDeciding(
  limits: readonly ResolvedLimit[],
  outcomes: readonly LimitOutcome[],
): { readonly limit: ResolvedLimit; readonly outcome: LimitOutcome; readonly index: number } | undefined {
  let speaking = -1;
  for (let i = 0; i < limits.length; i++) {
    if (limits[i]!.group !== 0) continue;
    if (speaking < 0 || saysMore(outcomes[i]!, outcomes[speaking]!)) speaking = i;
  }
  return speaking < 0 ? undefined : { limit: limits[speaking]!, outcome: outcomes[speaking]!, index: speaking };
}

/**
 * The largest cost that would pass now: the least that any enforced limit has left. A limit on distinct values lets any
 * cost through, or none. If there are only such limits, it is how many new values may still come.
 */
export function leastRemaining(limits: readonly ResolvedLimit[], outcomes: readonly LimitOutcome[]): number {
  let least = Number.POSITIVE_INFINITY;
  let values = Number.POSITIVE_INFINITY;
  for (let i = 0; i < limits.length; i++) {
    const { limit, group } = limits[i]!;
    if (group !== 0) continue;
    const { fits, remaining } = outcomes[i]!;
    if (limit.distinct === undefined) least = Math.min(least, remaining);
    else if (fits === "now") values = Math.min(values, remaining);
    else least = 0;
  }
  return least === Number.POSITIVE_INFINITY ? values : least;
}

export function decisionReason(fits: Fit): DecisionReason {
  switch (fits) {
    case "now":
      return "within_limits";
    case "later":
      return "over_limit";
    case "blocked":
      return "blocked";
    case "never":
      return "never_fits";
  }
}

/** The wait of a denial that can pass later; undefined for one that cannot. */
export function findRetryAfter(outcome: Pick<LimitOutcome, "fits" | "retryAfterMs">): number | undefined {
  return outcome.fits === "now" || outcome.fits === "never" ? undefined : outcome.retryAfterMs;
}

/** Undefined for a denial that says when to retry, because that is what matters. */
export function findMoreAfter({ fits, moreAfterMs }: Pick<LimitOutcome, "fits" | "moreAfterMs">): number | undefined {
  return (fits === "now" || fits === "never") && moreAfterMs !== Number.POSITIVE_INFINITY ? moreAfterMs : undefined;
}

export function limitDecision(
  resolved: ResolvedLimit,
  outcome: LimitOutcome,
  record: LimitRecord | undefined,
): LimitDecision {
  const { limit, cost, subject, group } = resolved;
  const { window, fits } = outcome;
  return {
    policy: limit.policy.id,
    version: limit.policy.version,
    scope: limit.scope,
    subject,
    algorithm: limit.source.algorithm,
    ...(limit.distinct && { distinct: describeDistinct(limit.distinct.dimension, window.capacity) }),
    allowed: fits === "now",
    reason: decisionReason(fits),
    window: window.source,
    cost,
    limit: window.capacity,
    remaining: outcome.remaining,
    used: usedUnits(window, outcome.windowRemaining),
    retryAfterMs: findRetryAfter(outcome),
    resetAfterMs: outcome.resetAfterMs,
    queue: findQueue(window, outcome),
    shadow: group !== 0,
    ...(record !== undefined && { record }),
  };
}

/** Whole units; a burst of 2.78 holds two. */
export function usedUnits(window: CompiledWindow, windowRemaining: number): number {
  return Math.floor(window.capacity) - windowRemaining;
}

export function findQueue(
  window: CompiledWindow,
  { queuePosition, queueDelayMs, fits }: Pick<LimitOutcome, "queuePosition" | "queueDelayMs" | "fits">,
): LimitDecision["queue"] {
  return window.leaky && fits === "now" ? { position: queuePosition, delayMs: queueDelayMs } : undefined;
}

export function shadowDenials(
  limits: readonly ResolvedLimit[],
  outcomes: readonly LimitOutcome[],
): readonly ShadowDenial[] {
  const denials: ShadowDenial[] = [];
  for (let i = 0; i < limits.length; i++) {
    const { limit, group } = limits[i]!;
    const outcome = outcomes[i]!;
    if (group === 0 || outcome.fits === "now") continue;
    denials.push({
      policy: limit.policy.id,
      version: limit.policy.version,
      scope: limit.scope,
      reason: decisionReason(outcome.fits),
      retryAfterMs: findRetryAfter(outcome),
    });
  }
  return denials;
}
