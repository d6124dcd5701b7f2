import {
  CalendarUnit,
  type Decision as DecisionMessage,
  type LimitDecision as LimitMessage,
  Reason,
  type ShadowDenial as ShadowMessage,
  State,
  type Window as WindowMessage,
} from "@sluice/protocol";
import type { Decision, DecisionReason, LimitDecision, SubjectState, Window } from "sluice";
import { type ShadowDenial, withLabel } from "sluice/internal";

const reasons: Readonly<Record<number, DecisionReason>> = {
  [Reason.WITHIN_LIMITS]: "within_limits",
  [Reason.OVER_LIMIT]: "over_limit",
  [Reason.NEVER_FITS]: "never_fits",
  [Reason.BLOCKED]: "blocked",
  [Reason.DENY_LIST]: "deny_list",
  [Reason.MISSING_DIMENSION]: "missing_dimension",
  [Reason.UNLIMITED]: "unlimited",
  [Reason.DEGRADED]: "degraded",
};

const states: Readonly<Record<number, SubjectState>> = {
  [State.NORMAL]: "normal",
  [State.WARNING]: "warning",
  [State.THROTTLED]: "throttled",
};

/** Decodes a decision. `details`: whether the answer of every limit was requested. */
export function decodeDecision(message: DecisionMessage, details: boolean): Decision {
  const { degraded, shadow, receipt, window } = message;
  return {
    allowed: message.allowed,
    reason: decodeReason(message.reason, message.allowed),
    cost: message.cost,
    policy: message.policy,
    version: message.version,
    scope: message.scope,
    window: window === undefined ? undefined : decodeWindow(window),
    limit: message.limit,
    remaining: message.remaining,
    limitRemaining: message.limitRemaining ?? message.remaining,
    used: message.used,
    retryAfterMs: message.retryAfterMs,
    resetAfterMs: message.resetAfterMs,
    resetAtMs: message.resetAtMs,
    moreAfterMs: message.moreAfterMs,
    queue: message.queue,
    state: states[message.state] ?? "normal",
    denyCount: message.denyCount,
    replayed: message.replayed,
    preview: message.preview,
    degraded: degraded === "" ? undefined : (degraded as Decision["degraded"]),
    shadow: shadow.length === 0 ? none : shadow.map(decodeShadow),
    limits: details ? message.limits.map(decodeLimit) : undefined,
    receipt: receipt === "" ? undefined : receipt,
  };
}

const none: readonly ShadowDenial[] = [];

/** A newer server may have reasons that this client does not know. */
function decodeReason(reason: number, allowed: boolean): DecisionReason {
  return reasons[reason] ?? (allowed ? "within_limits" : "over_limit");
}

function decodeShadow({ policy, version, scope, reason, retryAfterMs }: ShadowMessage): ShadowDenial {
  return { policy, version, scope, reason: decodeReason(reason, false), retryAfterMs };
}

function decodeLimit(message: LimitMessage): LimitDecision {
  return {
    policy: message.policy,
    version: message.version,
    scope: message.scope,
    subject: message.subject,
    algorithm: message.algorithm as LimitDecision["algorithm"],
    allowed: message.allowed,
    reason: decodeReason(message.reason, message.allowed),
    window: message.window === undefined ? unknownWindow : decodeWindow(message.window),
    cost: message.cost,
    limit: message.limit,
    remaining: message.remaining,
    used: message.used,
    retryAfterMs: message.retryAfterMs,
    resetAfterMs: message.resetAfterMs ?? Number.POSITIVE_INFINITY,
    queue: message.queue,
    shadow: message.shadow,
  };
}

const unknownWindow: Window = { limit: 0, per: { kind: "never" }, burst: 0 };

function decodeWindow(message: WindowMessage): Window {
  const { limit, burst, name, label } = message;
  return withLabel(
    { limit, per: decodePer(message), burst, ...(name !== "" && { name }) },
    label === "" ? undefined : label,
  );
}

function decodePer({ perMs, calendar, timeZone }: WindowMessage): Window["per"] {
  if (perMs !== undefined) return { kind: "ms", ms: perMs };
  if (calendar === undefined) return { kind: "never" };
  return { kind: "calendar", unit: calendar === CalendarUnit.MONTH ? "month" : "day", timeZone };
}
