import type { DecisionBody, WindowBody } from "@sluice/protocol/http";
import type { Decision, DecisionReason, LimitDecision, SubjectState, Window } from "sluice";
import { parseDuration, type ShadowDenial, withLabel } from "sluice/internal";

/** A body before it is decoded: the protocol's field names, with any values. */
export type Unread<Body> = { readonly [Key in keyof Body]?: unknown };

type LimitBody = NonNullable<DecisionBody["limits"]>[number];
type ShadowBody = NonNullable<DecisionBody["shadow"]>[number];
type PeriodBody = Exclude<WindowBody["per"], string>;

/** Decodes a decision from JSON. Undefined if it is not one. */
export function decodeDecisionBody(body: unknown): Decision | undefined {
  if (!isBody<DecisionBody>(body) || typeof body.allowed !== "boolean" || typeof body.reason !== "string")
    return undefined;
  return {
    allowed: body.allowed,
    reason: body.reason as DecisionReason,
    cost: number(body.cost) ?? 1,
    policy: text(body.policy),
    version: number(body.version),
    scope: text(body.scope),
    window: windowFrom(body.window),
    limit: number(body.limit),
    remaining: number(body.remaining),
    limitRemaining: number(body.limit_remaining) ?? number(body.remaining),
    used: number(body.used),
    retryAfterMs: number(body.retry_after_ms),
    resetAfterMs: number(body.reset_after_ms),
    resetAtMs: number(body.reset_at_ms),
    moreAfterMs: number(body.more_after_ms),
    queue: queueFrom(body.queue),
    ...distinctFrom(body.distinct),
    state: (text(body.state) as SubjectState | undefined) ?? "normal",
    denyCount: number(body.deny_count) ?? 0,
    replayed: body.replayed === true,
    preview: body.preview === true,
    degraded: text(body.degraded) as Decision["degraded"],
    shadow: Array.isArray(body.shadow) ? body.shadow.filter(isBody<ShadowBody>).map(shadowFrom) : none,
    limits: Array.isArray(body.limits) ? body.limits.filter(isBody<LimitBody>).map(limitFrom) : undefined,
    receipt: text(body.receipt),
  };
}

const none: readonly ShadowDenial[] = [];

function shadowFrom(body: Unread<ShadowBody>): ShadowDenial {
  return {
    policy: text(body.policy) ?? "",
    version: number(body.version) ?? 0,
    scope: text(body.scope),
    reason: body.reason as DecisionReason,
    retryAfterMs: number(body.retry_after_ms),
  };
}

function limitFrom(body: Unread<LimitBody>): LimitDecision {
  return {
    policy: text(body.policy) ?? "",
    version: number(body.version) ?? 0,
    scope: text(body.scope) ?? "",
    subject: text(body.subject) ?? "",
    algorithm: body.algorithm as LimitDecision["algorithm"],
    allowed: body.allowed === true,
    reason: body.reason as DecisionReason,
    window: windowFrom(body.window) ?? { limit: 0, per: { kind: "never" }, burst: 0 },
    cost: number(body.cost) ?? 1,
    limit: number(body.limit) ?? 0,
    remaining: number(body.remaining) ?? 0,
    used: number(body.used) ?? 0,
    retryAfterMs: number(body.retry_after_ms),
    resetAfterMs: number(body.reset_after_ms) ?? Number.POSITIVE_INFINITY,
    queue: queueFrom(body.queue),
    ...distinctFrom(body.distinct),
    shadow: body.shadow === true,
  };
}

function distinctFrom(body: unknown): Pick<Decision, "distinct"> | undefined {
  if (!isBody<NonNullable<DecisionBody["distinct"]>>(body)) return undefined;
  return { distinct: { dimension: text(body.dimension) ?? "", error: number(body.error) ?? 0 } };
}

function queueFrom(body: unknown): Decision["queue"] {
  if (!isBody<NonNullable<DecisionBody["queue"]>>(body)) return undefined;
  return { position: number(body.position) ?? 0, delayMs: number(body.delay_ms) ?? 0 };
}

function windowFrom(body: unknown): Window | undefined {
  if (!isBody<WindowBody>(body)) return undefined;
  const limit = number(body.limit) ?? 0;
  const per = perFrom(body.per);
  const name = text(body.name);
  const window = { limit, per, burst: number(body.burst) ?? limit, ...(name !== undefined && { name }) };
  return withLabel(window, text(body.label));
}

function perFrom(per: unknown): Window["per"] {
  if (isBody<PeriodBody>(per)) {
    return {
      kind: "calendar",
      unit: per.calendar === "month" ? "month" : "day",
      timeZone: text(per.time_zone) ?? "UTC",
    };
  }
  if (typeof per !== "string" || per === "never") return { kind: "never" };
  return { kind: "ms", ms: durationMs(per) };
}

/** There are few durations, and they repeat. */
const durations = new Map<string, number>();
const mostDurations = 1_000;

function durationMs(written: string): number {
  let ms = durations.get(written);
  if (ms === undefined) {
    ms = parseDuration(written);
    if (durations.size >= mostDurations) durations.clear();
    durations.set(written, ms);
  }
  return ms;
}

export function isBody<Body>(value: unknown): value is Unread<Body> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function number(value: unknown): number | undefined {
  return typeof value === "number" ? value : undefined;
}

function text(value: unknown): string | undefined {
  return typeof value === "string" ? value : undefined;
}
