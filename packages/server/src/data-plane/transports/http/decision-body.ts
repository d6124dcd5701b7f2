import {
  type Decision,
  type DecisionReason,
  type LimitDecision,
  type ShadowDenial,
  type SubjectState,
  type Window,
  windowLabel,
} from "sluice";
import { rememberPerWindow } from "sluice/store";
import { type WindowBody, windowBody } from "./policy-body.ts";

/** A decision as JSON. What is undefined is left out; times are milliseconds. */
export interface DecisionBody {
  readonly allowed: boolean;
  readonly reason: DecisionReason;
  readonly cost: number;
  readonly policy?: string | undefined;
  readonly version?: number | undefined;
  readonly scope?: string | undefined;
  readonly window?: WindowBody | undefined;
  readonly limit?: number | undefined;
  readonly remaining?: number | undefined;
  /** Left out where it is the same as `remaining`. */
  readonly limit_remaining?: number | undefined;
  readonly used?: number | undefined;
  readonly retry_after_ms?: number | undefined;
  readonly reset_after_ms?: number | undefined;
  readonly reset_at_ms?: number | undefined;
  readonly more_after_ms?: number | undefined;
  readonly queue?: QueueBody | undefined;
  readonly state: SubjectState;
  readonly deny_count: number;
  readonly replayed: boolean;
  readonly preview: boolean;
  readonly degraded?: string | undefined;
  readonly shadow?: readonly ShadowBody[] | undefined;
  readonly limits?: readonly LimitBody[] | undefined;
  readonly receipt?: string | undefined;
}

export interface LimitBody {
  readonly policy: string;
  readonly version: number;
  readonly scope: string;
  readonly subject: string;
  readonly algorithm: string;
  readonly allowed: boolean;
  readonly reason: DecisionReason;
  readonly window: WindowBody;
  readonly cost: number;
  readonly limit: number;
  readonly remaining: number;
  readonly used: number;
  readonly retry_after_ms?: number | undefined;
  readonly reset_after_ms: number;
  readonly queue?: QueueBody | undefined;
  readonly shadow: boolean;
}

export interface ShadowBody {
  readonly policy: string;
  readonly version: number;
  readonly scope?: string | undefined;
  readonly reason: DecisionReason;
  readonly retry_after_ms?: number | undefined;
}

export interface QueueBody {
  readonly position: number;
  readonly delay_ms: number;
}

export function decisionBody(decision: Decision): DecisionBody {
  const { queue, shadow, limits } = decision;
  return {
    allowed: decision.allowed,
    reason: decision.reason,
    cost: decision.cost,
    policy: decision.policy,
    version: decision.version,
    scope: decision.scope,
    window: decision.window === undefined ? undefined : windowBodyOf(decision.window),
    limit: decision.limit,
    remaining: decision.remaining,
    limit_remaining: decision.limitRemaining === decision.remaining ? undefined : decision.limitRemaining,
    used: decision.used,
    retry_after_ms: finite(decision.retryAfterMs),
    reset_after_ms: finite(decision.resetAfterMs),
    reset_at_ms: finite(decision.resetAtMs),
    more_after_ms: finite(decision.moreAfterMs),
    queue: queueBody(queue),
    state: decision.state,
    deny_count: decision.denyCount,
    replayed: decision.replayed,
    preview: decision.preview,
    degraded: decision.degraded,
    shadow: shadow.length === 0 ? undefined : shadow.map(shadowBody),
    limits: limits?.map(limitBody),
    receipt: decision.receipt,
  };
}

function limitBody(limit: LimitDecision): LimitBody {
  const { retryAfterMs, resetAfterMs, window, queue, ...rest } = limit;
  return {
    ...rest,
    window: windowBodyOf(window),
    retry_after_ms: finite(retryAfterMs),
    reset_after_ms: resetAfterMs,
    queue: queueBody(queue),
  };
}

function shadowBody({ retryAfterMs, ...rest }: ShadowDenial): ShadowBody {
  return { ...rest, retry_after_ms: finite(retryAfterMs) };
}

export const windowBodyOf: (window: Window) => WindowBody = rememberPerWindow((window) => ({
  ...windowBody(window),
  label: windowLabel(window),
}));

function queueBody(queue: Decision["queue"]): QueueBody | undefined {
  return queue === undefined ? undefined : { position: queue.position, delay_ms: queue.delayMs };
}

/** JSON has no infinity; what never comes is left out. */
function finite(value: number | undefined): number | undefined {
  return value !== undefined && Number.isFinite(value) ? value : undefined;
}
