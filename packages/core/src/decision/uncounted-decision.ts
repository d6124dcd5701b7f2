import type { ResolvedLimit } from "../counters/counter-store.ts";
import type { StoreUnavailableReason } from "../counters/store-unavailable.ts";
import type { CompiledPolicy } from "../match/compiled-policy.ts";
import type { Refusal } from "../match/resolve.ts";
import type { CheckRequest } from "../request/check-request.ts";
import type { Decision, ShadowDenial } from "./decision.ts";
import { outageRetryMs } from "./retry-after.ts";

/** A policy denies by name or for a missing dimension, or an operator keeps the subject out. */
export function refusedDecision(
  request: CheckRequest,
  { policy, reason, scope, block, retryAfterMs }: Refusal,
  shadow: readonly ShadowDenial[],
): Decision {
  const refused = {
    ...uncounted(request, shadow),
    allowed: false,
    reason,
    policy: policy?.policy.id,
    version: policy?.policy.version,
    scope,
  };
  if (block === undefined) return refused;
  return { ...refused, retryAfterMs, resetAfterMs: retryAfterMs, resetAtMs: block.untilMs };
}

/** No policy that applies limits this request. */
export function unlimitedDecision(
  request: CheckRequest,
  applied: readonly CompiledPolicy[],
  shadow: readonly ShadowDenial[],
): Decision {
  const policy = applied.find((one) => one.enforced)?.policy;
  return { ...uncounted(request, shadow), policy: policy?.id, version: policy?.version };
}

/**
 * The counters are unavailable, and no policy that applies has local ones. One that fails closed is enough to deny. An
 * outage is never disguised as a denial by a limit: the reason is always `degraded`, and uncounted values (used,
 * remaining, reset) are left out.
 */
export function degradedDecision(
  request: CheckRequest,
  limits: readonly ResolvedLimit[],
  degraded: StoreUnavailableReason,
  shadow: readonly ShadowDenial[],
): Decision {
  const enforced = limits.filter(({ group }) => group === 0);
  const closed = enforced.find(({ limit }) => limit.policy.onFailure === "closed");
  const outage = outageDecision(request, closed === undefined, degraded, shadow);
  const speaking = closed ?? enforced[0];
  if (speaking === undefined) return outage;
  const { limit, windows, cost } = speaking;
  const { source, capacity } = windows[0]!;
  return {
    ...outage,
    cost,
    policy: limit.policy.id,
    version: limit.policy.version,
    scope: limit.scope,
    window: source,
    limit: capacity,
  };
}

/** The answer to an outage if no limits are known. */
export function outageDecision(
  request: CheckRequest,
  allowed: boolean,
  degraded: StoreUnavailableReason,
  shadow: readonly ShadowDenial[] = [],
): Decision {
  return {
    ...uncounted(request, shadow),
    allowed,
    reason: "degraded",
    retryAfterMs: allowed ? undefined : outageRetryMs,
    degraded,
  };
}

/** An operator decides for all. A denied caller may come back when that ends. */
export function forcedDecision(
  request: CheckRequest,
  { mode, untilMs }: { readonly mode: "open" | "closed"; readonly untilMs: number },
  epochMs: number,
): Decision {
  const waitMs = Math.max(Math.ceil(untilMs - epochMs), 1);
  return {
    ...uncounted(request, []),
    allowed: mode === "open",
    reason: "degraded",
    retryAfterMs: mode === "open" ? undefined : waitMs,
    resetAfterMs: waitMs,
    resetAtMs: untilMs,
    degraded: "kill_switch",
  };
}

/** A decision without a counter: allowed, and without a limit. */
function uncounted(request: CheckRequest, shadow: readonly ShadowDenial[]): Decision {
  return {
    allowed: true,
    reason: "unlimited",
    cost: request.cost ?? 1,
    policy: undefined,
    version: undefined,
    scope: undefined,
    window: undefined,
    limit: undefined,
    remaining: undefined,
    limitRemaining: undefined,
    used: undefined,
    retryAfterMs: undefined,
    resetAfterMs: undefined,
    resetAtMs: undefined,
    moreAfterMs: undefined,
    queue: undefined,
    state: "normal",
    denyCount: 0,
    replayed: false,
    preview: request.preview === true,
    degraded: undefined,
    shadow,
    limits: request.details === true ? [] : undefined,
    receipt: undefined,
  };
}
