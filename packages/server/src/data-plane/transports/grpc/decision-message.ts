import {
  CalendarUnit,
  type Decision as DecisionMessage,
  type LimitDecision as LimitDecisionMessage,
  Reason,
  type ShadowDenial as ShadowDenialMessage,
  State,
  type Window as WindowMessage,
} from "@sluice/protocol";
import type { Decision, DecisionReason, LimitDecision, SubjectState, Window } from "sluice";
import { rememberPerWindow, type ShadowDenial, windowLabel } from "sluice/internal";

export const reasons: Readonly<Record<DecisionReason, Reason>> = {
  within_limits: Reason.WITHIN_LIMITS,
  over_limit: Reason.OVER_LIMIT,
  never_fits: Reason.NEVER_FITS,
  blocked: Reason.BLOCKED,
  deny_list: Reason.DENY_LIST,
  missing_dimension: Reason.MISSING_DIMENSION,
  unlimited: Reason.UNLIMITED,
  degraded: Reason.DEGRADED,
};

export const states: Readonly<Record<SubjectState, State>> = {
  normal: State.NORMAL,
  warning: State.WARNING,
  throttled: State.THROTTLED,
};

const none: never[] = [];

/** A decision as a message. What is undefined, or never comes, is absent. */
export function decisionMessage(decision: Decision): DecisionMessage {
  const { window, queue, shadow, limits } = decision;
  return {
    allowed: decision.allowed,
    reason: reasons[decision.reason],
    cost: decision.cost,
    policy: decision.policy,
    version: decision.version,
    scope: decision.scope,
    limit: decision.limit,
    remaining: decision.remaining,
    used: decision.used,
    retryAfterMs: whole(decision.retryAfterMs),
    resetAfterMs: whole(decision.resetAfterMs),
    resetAtMs: whole(decision.resetAtMs),
    window: window === undefined ? undefined : windowMessage(window),
    queue,
    state: states[decision.state],
    denyCount: decision.denyCount,
    replayed: decision.replayed,
    preview: decision.preview,
    degraded: decision.degraded ?? "",
    shadow: shadow.length === 0 ? none : shadow.map(shadowMessage),
    limits: limits === undefined ? none : limits.map(limitMessage),
    receipt: decision.receipt ?? "",
    moreAfterMs: whole(decision.moreAfterMs),
    limitRemaining: decision.limitRemaining === decision.remaining ? undefined : decision.limitRemaining,
  };
}

function limitMessage(limit: LimitDecision): LimitDecisionMessage {
  return {
    ...limit,
    reason: reasons[limit.reason],
    window: windowMessage(limit.window),
    retryAfterMs: whole(limit.retryAfterMs),
    resetAfterMs: whole(limit.resetAfterMs),
  };
}

function shadowMessage(denial: ShadowDenial): ShadowDenialMessage {
  return { ...denial, reason: reasons[denial.reason], retryAfterMs: whole(denial.retryAfterMs) };
}

const calendarUnits = { day: CalendarUnit.DAY, month: CalendarUnit.MONTH } as const;

export const windowMessage: (window: Window) => WindowMessage = rememberPerWindow((window) => {
  const { limit, per, burst, name = "" } = window;
  return {
    limit,
    perMs: per.kind === "ms" ? per.ms : undefined,
    calendar: per.kind === "calendar" ? calendarUnits[per.unit] : undefined,
    never: per.kind === "never" ? true : undefined,
    timeZone: per.kind === "calendar" ? per.timeZone : "",
    burst,
    name,
    label: windowLabel(window) ?? "",
  };
});

/** A whole number of milliseconds, rounded up; undefined for what never comes. */
export function whole(ms: number | undefined): number | undefined {
  if (ms === undefined || Number.isSafeInteger(ms)) return ms;
  return Number.isFinite(ms) && Math.abs(ms) < Number.MAX_SAFE_INTEGER ? Math.ceil(ms) : undefined;
}
