import type { Decision, LimitDecision } from "sluice";

/** How one limit stands. What there is no limit for is null, as is a wait that does not help. */
export interface RateLimitStanding {
  readonly allowed: boolean;
  readonly tokens_remaining: number | null;
  readonly tokens_capacity: number | null;
  readonly retry_after_seconds: number | null;
  readonly reset_at: string | null;
  readonly degraded: boolean;
  readonly degraded_reason: string | null;
}

export interface RateLimitBody extends RateLimitStanding {
  readonly error?: "rate_limit_exceeded" | "storage_unavailable";
  /** `scope:resource` of the limit that denies. */
  readonly blocking_limit?: string | null;
  readonly retry_after?: number | null;
  readonly limit_results?: Readonly<Record<string, RateLimitStanding>>;
  readonly most_restrictive_limit?: RateLimitStanding;
}

/** How long this vocabulary expects an outage to last, of which nothing is known. */
const outageMs = 60_000;

/** What this vocabulary says while counters cannot be asked: all is left or nothing, and it lasts a minute. */
function assumeOutage(decision: Decision, nowMs: number): Decision {
  if (decision.reason !== "degraded" || decision.degraded === "kill_switch") return decision;
  const { allowed, limit } = decision;
  return {
    ...decision,
    remaining: limit === undefined ? undefined : allowed ? Math.floor(limit) : 0,
    retryAfterMs: allowed ? undefined : outageMs,
    resetAfterMs: outageMs,
    resetAtMs: nowMs + outageMs,
  };
}

/** `limit` is the limit that was asked for; `hierarchy` the policies of all levels, where there are several. */
export function rateLimitBody(
  decided: Decision,
  limit: string,
  nowMs: number,
  hierarchy?: readonly string[],
): RateLimitBody {
  const decision = assumeOutage(decided, nowMs);
  const { allowed } = decision;
  const standing = standingOf(decision, decision.resetAtMs, decision.degraded);
  return {
    ...(!allowed && {
      error: decision.reason === "degraded" ? "storage_unavailable" : "rate_limit_exceeded",
      blocking_limit: hierarchy === undefined ? limit : (decision.policy ?? limit),
      retry_after: secondsOf(decision.retryAfterMs),
    }),
    ...standing,
    ...(hierarchy !== undefined && {
      ...(allowed && { blocking_limit: null }),
      limit_results: resultsOf(decision, hierarchy),
      most_restrictive_limit: standing,
    }),
  };
}

type Standing = Pick<Decision | LimitDecision, "allowed" | "remaining" | "limit" | "retryAfterMs">;

function standingOf(
  { allowed, remaining, limit, retryAfterMs }: Standing,
  resetAtMs: number | undefined,
  degraded: string | undefined,
): RateLimitStanding {
  return {
    allowed,
    tokens_remaining: remaining ?? null,
    tokens_capacity: limit ?? null,
    retry_after_seconds: allowed ? null : secondsOf(retryAfterMs),
    reset_at: resetAtMs === undefined || !Number.isFinite(resetAtMs) ? null : new Date(resetAtMs).toISOString(),
    degraded: degraded !== undefined,
    degraded_reason: degraded ?? null,
  };
}

/** One result per level. A policy with several limits is described by the strictest of them, with what is left over all. */
function resultsOf(decision: Decision, hierarchy: readonly string[]): Readonly<Record<string, RateLimitStanding>> {
  const nowMs = (decision.resetAtMs ?? 0) - (decision.resetAfterMs ?? 0);
  const results: Record<string, RateLimitStanding> = {};
  for (const policy of hierarchy) {
    const limits = (decision.limits ?? []).filter((limit) => limit.policy === policy);
    const [strictest] = limits.toSorted(byStrictness);
    if (strictest === undefined) continue;
    const remaining = Math.min(...limits.map((limit) => limit.remaining));
    results[policy] = standingOf({ ...strictest, remaining }, nowMs + strictest.resetAfterMs, decision.degraded);
  }
  return results;
}

/** Denials first, the longest wait before others; then the smallest share left. */
function byStrictness(one: LimitDecision, other: LimitDecision): number {
  if (one.allowed !== other.allowed) return one.allowed ? 1 : -1;
  if (!one.allowed) return (other.retryAfterMs ?? Infinity) - (one.retryAfterMs ?? Infinity) || 0;
  return other.used / other.limit - one.used / one.limit;
}

/** With fractions: a quarter of a second is not no time at all. */
function secondsOf(ms: number | undefined): number | null {
  return ms === undefined || !Number.isFinite(ms) ? null : ms / 1000;
}
