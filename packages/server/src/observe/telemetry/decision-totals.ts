import { durationBounds } from "./buckets.ts";

/** Everything that was decided since the start, as plain numbers that only grow. */
export interface DecisionTotals {
  readonly allowed: number;
  readonly denied: number;
  readonly degraded: number;
  readonly shadowDenied: number;
  /** Denials by reason. */
  readonly denials: Readonly<Record<string, number>>;
  /** How many decisions took at most each of `durationBounds`, and longer than the one before; last, longer than all. */
  readonly durations: readonly number[];
}

/** What was decided between two totals, in this many seconds. */
export interface DecisionRates {
  readonly decided: number;
  readonly allowed: number;
  readonly denied: number;
  readonly degraded: number;
  readonly shadowDenied: number;
  /** Without reasons that did not occur. */
  readonly deniedBy: Readonly<Record<string, number>>;
  /** Undefined if nothing was decided. */
  readonly latencyMs: { readonly p50: number; readonly p99: number } | undefined;
}

export function addTotals(one: DecisionTotals, other: DecisionTotals): DecisionTotals {
  return combine(one, other, (a, b) => a + b);
}

/** Policies that are gone take their counts with them, so a difference is at least 0. */
export function ratesBetween(before: DecisionTotals, now: DecisionTotals, seconds: number): DecisionRates {
  const since = combine(now, before, (a, b) => Math.max(0, a - b));
  const perSecond = (count: number): number => count / seconds;
  const { allowed, denied, durations } = since;
  return {
    decided: perSecond(allowed + denied),
    allowed: perSecond(allowed),
    denied: perSecond(denied),
    degraded: perSecond(since.degraded),
    shadowDenied: perSecond(since.shadowDenied),
    deniedBy: Object.fromEntries(
      Object.entries(since.denials).flatMap(([reason, count]) => (count > 0 ? [[reason, perSecond(count)]] : [])),
    ),
    latencyMs: durations.some((count) => count > 0)
      ? { p50: quantile(durations, 0.5) * 1_000, p99: quantile(durations, 0.99) * 1_000 }
      : undefined,
  };
}

function combine(one: DecisionTotals, other: DecisionTotals, join: (a: number, b: number) => number): DecisionTotals {
  const reasons = new Set([...Object.keys(one.denials), ...Object.keys(other.denials)]);
  return {
    allowed: join(one.allowed, other.allowed),
    denied: join(one.denied, other.denied),
    degraded: join(one.degraded, other.degraded),
    shadowDenied: join(one.shadowDenied, other.shadowDenied),
    denials: Object.fromEntries(
      [...reasons].map((reason) => [reason, join(one.denials[reason] ?? 0, other.denials[reason] ?? 0)]),
    ),
    durations: one.durations.map((count, i) => join(count, other.durations[i] ?? 0)),
  };
}

/** The time that this share of decisions stayed below, in seconds, interpolated within its bucket. */
function quantile(counts: readonly number[], share: number): number {
  const total = counts.reduce((sum, count) => sum + count, 0);
  let left = total * share;
  for (const [i, count] of counts.entries()) {
    const from = i === 0 ? 0 : durationBounds[i - 1]!;
    const to = durationBounds[i] ?? from;
    if (count > 0 && left <= count) return from + (to - from) * (left / count);
    left -= count;
  }
  return durationBounds.at(-1)!;
}
