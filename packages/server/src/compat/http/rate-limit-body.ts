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

export interface LevelStanding extends RateLimitStanding {
  /** The policy that decided the level: `scope:resource`, or the default policy if there is no such policy. */
  readonly policy: string;
}

/** Levels of a hierarchy that were decided as one request: several policies, or a level that the default policy decided. */
export interface LevelDecisions {
  readonly names: readonly string[];
  readonly decision: Decision;
}

export interface RateLimitBody extends RateLimitStanding {
  readonly error?: "rate_limit_exceeded" | "storage_unavailable";
  /** `scope:resource` of the limit that denies. */
  readonly blocking_limit?: string | null;
  readonly retry_after?: number | null;
  readonly limit_results?: Readonly<Record<string, LevelStanding>>;
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

/** The level that decides: of denials the one with the longest wait, else the one with the smallest share left. */
export function speakingLevel(levels: readonly LevelDecisions[]): LevelDecisions {
  const [speaking] = levels.toSorted((one, other) => byStrictness(one.decision, other.decision));
  const left = levels.map(({ decision }) => decision.remaining).filter((remaining) => remaining !== undefined);
  if (left.length < 2) return speaking!;
  // What is left is the least over all levels, whichever decides.
  return { ...speaking!, decision: { ...speaking!.decision, remaining: Math.min(...left) } };
}

/** `limit` is the limit that was asked for; `levels` those of a hierarchy. */
export function rateLimitBody(
  decided: Decision,
  limit: string,
  nowMs: number,
  levels?: readonly LevelDecisions[],
): RateLimitBody {
  const decision = assumeOutage(decided, nowMs);
  const { allowed } = decision;
  const standing = standingOf(decision, decision.resetAtMs, decision.degraded);
  return {
    ...(!allowed && {
      error: decision.reason === "degraded" ? "storage_unavailable" : "rate_limit_exceeded",
      blocking_limit: levels === undefined ? limit : blockingLevel(levels, limit),
      retry_after: secondsOf(decision.retryAfterMs),
    }),
    ...standing,
    ...(levels !== undefined && {
      ...(allowed && { blocking_limit: null }),
      limit_results: Object.assign({}, ...levels.map(resultsOf)),
      most_restrictive_limit: standing,
    }),
  };
}

function blockingLevel(levels: readonly LevelDecisions[], limit: string): string {
  const { names, decision } = speakingLevel(levels);
  return names.length === 1 ? names[0]! : (decision.policy ?? limit);
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
function resultsOf({ names, decision }: LevelDecisions): Readonly<Record<string, LevelStanding>> {
  const nowMs = (decision.resetAtMs ?? 0) - (decision.resetAfterMs ?? 0);
  const results: Record<string, LevelStanding> = {};
  for (const name of names) {
    const limits = (decision.limits ?? []).filter((limit) => names.length === 1 || limit.policy === name);
    const [strictest] = limits.toSorted(byStrictness);
    if (strictest === undefined) continue;
    const remaining = Math.min(...limits.map((limit) => limit.remaining));
    const standing = standingOf({ ...strictest, remaining }, nowMs + strictest.resetAfterMs, decision.degraded);
    results[name] = { ...standing, policy: strictest.policy };
  }
  return results;
}

/** Denials first, the longest wait before others; then the smallest share left. */
function byStrictness(one: Judged, other: Judged): number {
  if (one.allowed !== other.allowed) return one.allowed ? 1 : -1;
  if (!one.allowed) return (other.retryAfterMs ?? Infinity) - (one.retryAfterMs ?? Infinity) || 0;
  return usedShare(other) - usedShare(one);
}

type Judged = Pick<Decision | LimitDecision, "allowed" | "retryAfterMs" | "used" | "limit">;

/** 0 where nothing was counted. */
function usedShare({ used, limit }: Judged): number {
  return used === undefined || limit === undefined ? 0 : used / limit;
}

/** With fractions: a quarter of a second is not no time at all. */
function secondsOf(ms: number | undefined): number | null {
  return ms === undefined || !Number.isFinite(ms) ? null : ms / 1000;
}
