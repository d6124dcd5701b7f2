import type { Decision, ShadowDenial } from "sluice";

/** How the counters stood when the last units were granted. */
export interface Told {
  readonly decision: Decision;
  /** By the clock that only runs forward. */
  readonly atMs: number;
}

const none: readonly ShadowDenial[] = [];

/**
 * What is answered to a check that units in hand were spent on. Its numbers are those of the grant: what was left then, with what is
 * still in hand here, which is charged already. What others took or gave since is not in them.
 */
export function leasedDecision({ decision, atMs }: Told, cost: number, unitsInHand: number, nowMs: number): Decision {
  const { limit, remaining, resetAfterMs, queue, state } = decision;
  const sinceMs = nowMs - atMs;
  const left = remaining === undefined ? undefined : Math.min(limit ?? Infinity, remaining + unitsInHand);
  return {
    allowed: true,
    reason: "within_limits",
    cost,
    policy: decision.policy,
    version: decision.version,
    scope: decision.scope,
    window: decision.window,
    limit,
    remaining: left,
    used: limit === undefined || left === undefined ? undefined : limit - left,
    retryAfterMs: undefined,
    resetAfterMs: resetAfterMs === undefined ? undefined : Math.max(0, Math.ceil(resetAfterMs - sinceMs)),
    resetAtMs: decision.resetAtMs,
    queue: queue && { position: queue.position, delayMs: Math.max(0, queue.delayMs - sinceMs) },
    // Who is allowed is not kept out, whatever was so when the units were granted.
    state: state === "throttled" ? "warning" : state,
    denyCount: 0,
    replayed: false,
    preview: false,
    degraded: undefined,
    shadow: none,
    limits: undefined,
    receipt: undefined,
  };
}
