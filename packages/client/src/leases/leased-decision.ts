import type { Decision } from "sluice";
import type { ShadowDenial } from "sluice/internal";

/** The state of the counters when the last units were granted. */
export interface GrantState {
  readonly decision: Decision;
  /** By the monotonic clock. */
  readonly atMs: number;
}

const none: readonly ShadowDenial[] = [];

/**
 * The answer to a check that units in hand paid for. Its numbers are those of the grant: the remainder at that time,
 * plus the units still in hand here, which are already charged. They do not include what others took or gave since.
 */
export function leasedDecision(
  { decision, atMs }: GrantState,
  cost: number,
  unitsInHand: number,
  nowMs: number,
): Decision {
  const { limit, remaining, used, resetAfterMs, resetAtMs, moreAfterMs, state } = decision;
  const sinceMs = nowMs - atMs;
  const most = limit === undefined ? undefined : Math.floor(limit);
  const left = remaining === undefined ? undefined : Math.min(most ?? Infinity, remaining + unitsInHand);
  const pastMs = resetAfterMs === undefined ? 0 : Math.max(0, Math.ceil(sinceMs - resetAfterMs));
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
    limitRemaining: left,
    used: used === undefined ? undefined : Math.max(0, used - unitsInHand),
    retryAfterMs: undefined,
    resetAfterMs: resetAfterMs === undefined ? undefined : Math.max(0, Math.ceil(resetAfterMs - sinceMs)),
    // Never in the past by the server's clock: a lease may outlive its window.
    resetAtMs: resetAtMs === undefined ? undefined : resetAtMs + pastMs,
    // The remainder is that of the grant, so it grows when the grant says.
    moreAfterMs: moreAfterMs === undefined || left === most ? undefined : Math.max(1, Math.ceil(moreAfterMs - sinceMs)),
    queue: findPlace(decision, cost, unitsInHand, sinceMs),
    // A subject that is allowed is not throttled, whatever its state was when the units were granted.
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

/** The place in a leaky bucket: behind everything charged except the units in hand, which come after it. */
function findPlace(
  { queue, window, resetAfterMs = 0 }: Decision,
  cost: number,
  unitsInHand: number,
  sinceMs: number,
): Decision["queue"] {
  if (queue === undefined || window?.per.kind !== "ms") return undefined;
  const intervalMs = window.per.ms / window.limit;
  const aheadMs = Math.max(resetAfterMs - sinceMs - unitsInHand * intervalMs, 0);
  return {
    position: Math.max(Math.ceil(aheadMs / intervalMs - 1e-3), cost),
    delayMs: Math.max(Math.ceil(aheadMs - cost * intervalMs), 0),
  };
}
