import {
  boolean,
  type Decision,
  integer,
  type LimitDecision,
  listOf,
  mapOf,
  maxCost,
  maxDimensionLength,
  objectOf,
  refine,
  type Shape,
  text,
} from "sluice";

/** A request in the words of a token bucket. */
export interface RateLimitRequest {
  readonly identifier: string;
  readonly resource: string;
  readonly tokens?: number;
  readonly scope?: string;
  readonly metadata?: Readonly<Record<string, unknown>>;
  readonly limit_hierarchy?: readonly (readonly [scope: string, resource: string])[];
  readonly consume?: boolean;
}

const name = text({ max: 128 });
const anything: Shape<unknown> = { name: "anything", schema: {}, read: (value) => value };
const pair: Shape<readonly [scope: string, resource: string]> = refine(
  listOf(name, { min: 2, max: 2 }),
  ([scope = "", resource = ""]) => [scope, resource] as const,
  "a pair of scope and resource",
);

export const rateLimitShape: Shape<RateLimitRequest> = objectOf(
  { identifier: text({ max: maxDimensionLength }), resource: name },
  {
    tokens: integer({ min: 1, max: maxCost }),
    scope: name,
    metadata: mapOf(name, anything, { max: 64 }),
    limit_hierarchy: listOf(pair, { min: 1, max: 16 }),
    consume: boolean,
  },
);

/** How one limit stands. What there is no limit for is null, as is a wait that does not help. */
export interface RateLimitStanding {
  readonly allowed: boolean;
  readonly tokens_remaining: number | null;
  readonly tokens_capacity: number | null;
  readonly retry_after_seconds: number | null;
  readonly reset_at: string | null;
}

export interface RateLimitBody extends RateLimitStanding {
  readonly degraded: boolean;
  readonly degraded_reason: string | null;
  readonly error?: "rate_limit_exceeded" | "storage_unavailable";
  /** `scope:resource` of the limit that denies. */
  readonly blocking_limit?: string | null;
  readonly retry_after?: number | null;
  readonly limit_results?: Readonly<Record<string, RateLimitStanding>>;
  readonly most_restrictive_limit?: RateLimitStanding;
}

/** `limit` is the limit that was asked for; `hierarchy` the policies of all levels, where there are several. */
export function rateLimitBody(decision: Decision, limit: string, hierarchy?: readonly string[]): RateLimitBody {
  const { allowed, degraded } = decision;
  const standing = standingOf(decision, decision.resetAtMs);
  return {
    ...(!allowed && {
      error: decision.reason === "degraded" ? "storage_unavailable" : "rate_limit_exceeded",
      blocking_limit: hierarchy === undefined ? limit : (decision.policy ?? limit),
      retry_after: secondsOf(decision.retryAfterMs),
    }),
    ...standing,
    degraded: degraded !== undefined,
    degraded_reason: degraded ?? null,
    ...(hierarchy !== undefined && {
      ...(allowed && { blocking_limit: null }),
      limit_results: resultsOf(decision, hierarchy),
      most_restrictive_limit: standing,
    }),
  };
}

type Standing = Pick<Decision | LimitDecision, "allowed" | "remaining" | "limit" | "retryAfterMs">;

function standingOf({ allowed, remaining, limit, retryAfterMs }: Standing, resetAtMs?: number): RateLimitStanding {
  return {
    allowed,
    tokens_remaining: remaining ?? null,
    tokens_capacity: limit ?? null,
    retry_after_seconds: allowed ? null : secondsOf(retryAfterMs),
    reset_at: resetAtMs === undefined || !Number.isFinite(resetAtMs) ? null : new Date(resetAtMs).toISOString(),
  };
}

/** One result per level: a policy with several limits is told by the strictest of them. */
function resultsOf(decision: Decision, hierarchy: readonly string[]): Readonly<Record<string, RateLimitStanding>> {
  const nowMs = (decision.resetAtMs ?? 0) - (decision.resetAfterMs ?? 0);
  const results: Record<string, RateLimitStanding> = {};
  for (const policy of hierarchy) {
    const [strictest] = (decision.limits ?? []).filter((limit) => limit.policy === policy).sort(byStrictness);
    if (strictest !== undefined) results[policy] = standingOf(strictest, nowMs + strictest.resetAfterMs);
  }
  return results;
}

/** Denials first, the longest wait before others; then the smallest share left. */
function byStrictness(one: LimitDecision, other: LimitDecision): number {
  if (one.allowed !== other.allowed) return one.allowed ? 1 : -1;
  if (!one.allowed) return (other.retryAfterMs ?? Infinity) - (one.retryAfterMs ?? Infinity) || 0;
  return one.remaining / one.limit - other.remaining / other.limit;
}

/** With fractions: a quarter of a second is not no time at all. */
function secondsOf(ms: number | undefined): number | null {
  return ms === undefined || !Number.isFinite(ms) ? null : ms / 1000;
}
