import type { ResolvedLimit } from "../counters/counter-store.ts";
import type { CheckRequest } from "../request/check-request.ts";
import type { Decision } from "./decision.ts";

/** How long an outage is expected to last when nothing is known of it. */
const outageMs = 60_000;

/**
 * The decision when counters cannot be asked. One policy that fails closed is enough to deny. An outage is never dressed up
 * as a denial by a limit: the reason is `degraded`, whatever the answer.
 */
export function degradedDecision(request: CheckRequest, limits: readonly ResolvedLimit[], epochMs: number): Decision {
  const enforced = limits.filter(({ group }) => group === 0);
  const closed = enforced.find(({ limit }) => limit.policy.onFailure === "closed");
  const speaking = closed ?? enforced[0];
  const window = speaking?.windows[0];
  const allowed = closed === undefined;
  return {
    allowed,
    reason: "degraded",
    cost: speaking?.cost ?? request.cost ?? 1,
    policy: speaking?.limit.policy.id,
    version: speaking?.limit.policy.version,
    scope: speaking?.limit.scope,
    window: window?.source,
    limit: window?.capacity,
    remaining: window === undefined ? undefined : allowed ? Math.floor(window.capacity) : 0,
    used: window === undefined ? undefined : allowed ? 0 : Math.floor(window.capacity),
    retryAfterMs: allowed ? undefined : outageMs,
    resetAfterMs: outageMs,
    resetAtMs: epochMs + outageMs,
    queue: undefined,
    state: "normal",
    denyCount: 0,
    replayed: false,
    preview: request.preview === true,
    degraded: "storage_unavailable",
    shadow: [],
    limits: request.details === true ? [] : undefined,
    receipt: undefined,
  };
}
