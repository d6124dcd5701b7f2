import type { StoreUnavailableReason } from "../counters/store-unavailable.ts";
import { SluiceError } from "../errors.ts";
import type { Window } from "../policy/policy.ts";
import type { Decision, DecisionReason } from "./decision.ts";
import { nameLimits } from "./render-headers.ts";
import { findWaitMs } from "./retry-after.ts";

/** A denial as `application/problem+json` (RFC 9457). Names policies and limits, never the subject's own values. */
export interface ProblemBody {
  readonly type: string;
  readonly title: string;
  /** 503 if the counters were unavailable: an outage is not the caller's fault. */
  readonly status: 429 | 503;
  readonly detail: string;
  readonly instance?: string;
  readonly reason: DecisionReason;
  readonly cost: number;
  readonly policy?: string;
  readonly scope?: string;
  readonly limit?: number;
  readonly remaining?: number;
  /** Absent if waiting does not help. */
  readonly retry_after_ms?: number;
  readonly reset_after_ms?: number;
  readonly degraded?: string;
  /** The names that `RateLimit-Policy` uses. */
  readonly "violated-policies"?: readonly string[];
}

const quotaExceeded = "https://iana.org/assignments/http-problem-types#quota-exceeded";

/** Throws for an allowed decision, which has no problem. */
export function renderProblemBody(decision: Decision, instance?: string): ProblemBody {
  const { allowed, reason, cost, policy, scope, limit, remaining, resetAfterMs, degraded } = decision;
  if (allowed) throw new SluiceError("internal", "an allowed decision has no problem body; only a denial has one");
  const waitMs = findWaitMs(decision);
  const exceeded = reason === "over_limit" || reason === "never_fits" || reason === "blocked";
  const violated = exceeded ? nameLimits(decision).filter((named) => !named.allowed) : [];
  return {
    type: exceeded ? quotaExceeded : "about:blank",
    title: reason === "degraded" ? "Service Unavailable" : "Too Many Requests",
    status: reason === "degraded" ? 503 : 429,
    detail: tellDetail(decision, waitMs) + tellOutage(decision),
    ...(instance !== undefined && { instance }),
    reason,
    cost,
    ...(policy !== undefined && { policy }),
    ...(scope !== undefined && { scope }),
    ...(limit !== undefined && { limit }),
    ...(remaining !== undefined && { remaining: Math.max(0, Math.floor(remaining)) }),
    ...(waitMs !== undefined && { retry_after_ms: waitMs }),
    ...(resetAfterMs !== undefined && Number.isFinite(resetAfterMs) && { reset_after_ms: resetAfterMs }),
    ...(degraded !== undefined && { degraded }),
    ...(violated.length > 0 && { "violated-policies": violated.map(({ name }) => name) }),
  };
}

const outages: Readonly<Record<StoreUnavailableReason, string>> = {
  storage_unavailable: "The limiter cannot reach its counters",
  storage_timeout: "The limiter's counters do not answer in time",
  process_starved: "The limiter is short of processor time",
  storage_overloaded: "The limiter's counters have too much to do",
  storage_full: "The limiter's counters have no room for this caller",
};

function tellDetail(decision: Decision, waitMs: number | undefined): string {
  const { reason, cost, limit, window, remaining = 0 } = decision;
  const policy = decision.policy === undefined ? "A policy" : `Policy ${decision.policy}`;
  const named = decision.scope === undefined ? policy : `${policy}, limit ${decision.scope},`;
  const rule = window === undefined ? `${named} has no room` : `${named} allows ${tellWindow(window, limit)}`;
  const comeBack = waitMs === undefined ? "Waiting does not help." : `Please come back in ${tellWait(waitMs)}.`;
  switch (reason) {
    case "deny_list":
      return `${policy} does not let this caller in. ${comeBack}`;
    case "missing_dimension":
      return `${named} needs a dimension that this request lacks. Please send it.`;
    case "degraded":
      if (decision.degraded === "kill_switch") return `An operator has stopped all requests for a while. ${comeBack}`;
      return `${outages[decision.degraded ?? "storage_unavailable"]}, and without them requests are refused. ${comeBack}`;
    case "blocked":
      if (window === undefined) return `An operator keeps this caller out for a while. ${comeBack}`;
      return `${rule}. This caller is blocked for a while. ${comeBack}`;
    default:
      if (limit !== undefined && cost > limit) {
        return `${rule}. This request costs ${cost}, and more than ${limit} never fits at once. ${comeBack}`;
      }
      return `${rule}. This request costs ${cost}, and ${Math.max(0, Math.floor(remaining))} is left. ${comeBack}`;
  }
}

/** Why a real denial is stricter than usual. */
function tellOutage({ reason, degraded }: Decision): string {
  if (degraded === undefined || degraded === "kill_switch" || reason === "degraded") return "";
  return ` ${outages[degraded]}, so this node counts on its own for the time being.`;
}

function tellWindow(window: Window, holds: number | undefined): string {
  const { limit, per } = window;
  const atOnce = holds === undefined || holds === limit ? "" : `, at most ${holds} at once`;
  if (per.kind === "never") return `${limit} in all${atOnce}`;
  const length = per.kind === "calendar" ? `calendar ${per.unit}` : tellLength(per.ms).replace(/^1 /, "");
  return `${limit} per ${length}${atOnce}`;
}

const units = [
  ["day", 86_400_000],
  ["hour", 3_600_000],
  ["minute", 60_000],
  ["second", 1000],
] as const;

/** Rounded up: in milliseconds under a second, else in the largest unit of which there are two. */
function tellWait(ms: number): string {
  if (ms < 1000) return `${Math.ceil(ms)} ms`;
  const unitMs = units.find(([, candidateMs]) => ms >= 2 * candidateMs)?.[1] ?? 1000;
  return tellLength(Math.ceil(ms / unitMs) * unitMs);
}

/** Exact, in the largest unit that divides it. */
function tellLength(ms: number): string {
  for (const [unit, unitMs] of units) {
    if (ms % unitMs === 0) return ms === unitMs ? `1 ${unit}` : `${ms / unitMs} ${unit}s`;
  }
  return `${ms} ms`;
}
