import type { Decision, LimitDecision } from "sluice";

/** The state of one limit. Null if there is no limit, or if waiting does not help. */
export interface RateLimitState {
  readonly allowed: boolean;
  readonly tokens_remaining: number | null;
  readonly tokens_capacity: number | null;
  readonly retry_after_seconds: number | null;
  readonly reset_at: string | null;
  readonly degraded: boolean;
  readonly degraded_reason: string | null;
}

export interface LevelState extends RateLimitState {
  /** The policy that decided the level: `scope:resource`, or the default policy if there is no such policy. */
  readonly policy: string;
}

/** Levels of a hierarchy that were decided as one request: several policies, or a level that the default policy decided. */
export interface LevelDecisions {
  readonly names: readonly string[];
  readonly decision: Decision;
}

export interface RateLimitBody extends RateLimitState {
  readonly error?: "rate_limit_exceeded" | "storage_unavailable";
  /** `scope:resource` of the limit that denies. */
  readonly blocking_limit?: string | null;
  readonly retry_after?: number | null;
  readonly limit_results?: Readonly<Record<string, LevelState>>;
  readonly most_restrictive_limit?: RateLimitState;
}

/** How long an outage is assumed to last in this vocabulary. */
const outageMs = 60_000;

/** The answer while counters are unavailable: everything is left or nothing, for a minute. */
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
  // The remainder is the least over all levels, whichever decides.
  return { ...speaking!, decision: { ...speaking!.decision, remaining: Math.min(...left) } };
}

/** `limit` is the requested limit; `levels` those of a hierarchy. */
export function rateLimitBody(
  decided: Decision,
  limit: string,
  nowMs: number,
  levels?: readonly LevelDecisions[],
): RateLimitBody {
  const decision = assumeOutage(decided, nowMs);
  const { allowed } = decision;
  const standing = renderState(decision, decision.resetAtMs, decision.degraded);
  return {
    ...(!allowed && {
      error: decision.reason === "degraded" ? "storage_unavailable" : "rate_limit_exceeded",
      blocking_limit: levels === undefined ? limit : blockingLevel(levels, limit),
      retry_after: secondsOrNull(decision.retryAfterMs),
    }),
    ...standing,
    ...(levels !== undefined && {
      ...(allowed && { blocking_limit: null }),
      limit_results: Object.assign({}, ...levels.map(renderResults)),
      most_restrictive_limit: standing,
    }),
  };
}

function blockingLevel(levels: readonly LevelDecisions[], limit: string): string {
  const { names, decision } = speakingLevel(levels);
  return names.length === 1 ? names[0]! : (decision.policy ?? limit);
}

type Standing = Pick<Decision | LimitDecision, "allowed" | "remaining" | "limit" | "retryAfterMs">;

function renderState(
  { allowed, remaining, limit, retryAfterMs }: Standing,
  resetAtMs: number | undefined,
  degraded: string | undefined,
): RateLimitState {
  return {
    allowed,
    tokens_remaining: remaining ?? null,
    tokens_capacity: limit ?? null,
    retry_after_seconds: allowed ? null : secondsOrNull(retryAfterMs),
    reset_at: resetAtMs === undefined || !Number.isFinite(resetAtMs) ? null : new Date(resetAtMs).toISOString(),
    degraded: degraded !== undefined,
    degraded_reason: degraded ?? null,
  };
}

/**
 * One result per level. A policy with several limits is described by the strictest of them, with the remainder over
 * all.
 */
function renderResults({ names, decision }: LevelDecisions): Readonly<Record<string, LevelState>> {
  const nowMs = (decision.resetAtMs ?? 0) - (decision.resetAfterMs ?? 0);
  const results: Record<string, LevelState> = {};
  for (const name of names) {
    const limits = (decision.limits ?? []).filter((limit) => names.length === 1 || limit.policy === name);
    const [strictest] = limits.toSorted(byStrictness);
    if (strictest === undefined) continue;
    const remaining = Math.min(...limits.map((limit) => limit.remaining));
    const standing = renderState({ ...strictest, remaining }, nowMs + strictest.resetAfterMs, decision.degraded);
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

/** 0 if nothing was counted. */
function usedShare({ used, limit }: Judged): number {
  return used === undefined || limit === undefined ? 0 : used / limit;
}

/** With fractions: a quarter of a second is not zero. */
function secondsOrNull(ms: number | undefined): number | null {
  return ms === undefined || !Number.isFinite(ms) ? null : ms / 1000;
}
