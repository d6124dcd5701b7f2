import {
  RateLimitResponse_Code as Code,
  type RateLimitResponse_DescriptorStatus as DescriptorStatus,
  RateLimitResponse_RateLimit_Unit as Unit,
  type RateLimitResponse_RateLimit as WrittenLimit,
} from "@sluice/protocol/envoy";
import type { Decision, LimitDecision, Window } from "sluice";
import type { DescriptorCheck } from "./plan-request.ts";

const maxUint32 = 2 ** 32 - 1;

export const unmatchedStatus: DescriptorStatus = { code: Code.OK, limitRemaining: 0 };
export const unlimitedStatus: DescriptorStatus = { code: Code.OK, limitRemaining: maxUint32 };

/** How a limit stands, from a decision or from one of its limits. */
type LimitStanding = Pick<
  Decision | LimitDecision,
  "allowed" | "policy" | "window" | "remaining" | "retryAfterMs" | "resetAfterMs"
>;

export function renderStatus(decision: Decision, { role, givesBack, findName }: DescriptorCheck): DescriptorStatus {
  const standing: LimitStanding = role === "enforced" ? decision : (findStrictest(decision.limits) ?? decision);
  // A descriptor that gives back, or never denies, is OK however it stands.
  const ok = standing.allowed || role === "shadow" || givesBack;
  const code = ok ? Code.OK : Code.OVER_LIMIT;
  const { window, remaining = 0 } = standing;
  if (window === undefined) {
    const exempt = decision.reason === "unlimited" && decision.policy !== undefined;
    return exempt ? unlimitedStatus : { ...unmatchedStatus, code };
  }
  return {
    code,
    currentLimit: renderLimit(window, findName(standing.policy)),
    // As in Envoy's own server: if the request does not pass, nothing is left for it.
    limitRemaining: ok ? Math.min(Math.max(remaining, 0), maxUint32) : 0,
    durationUntilReset: renderReset(standing),
  };
}

/**
 * The limit that denies with the longest wait, else the one with the smallest share left, with what is left over all of
 * them.
 */
function findStrictest(limits: readonly LimitDecision[] = []): LimitStanding | undefined {
  const wait = ({ allowed, retryAfterMs }: LimitDecision): number => (allowed ? -1 : (retryAfterMs ?? Infinity));
  const strictest = limits.reduce<LimitDecision | undefined>((most, one) => {
    if (most === undefined || wait(one) > wait(most)) return one;
    return wait(one) === wait(most) && one.used * most.limit > most.used * one.limit ? one : most;
  }, undefined);
  return strictest && { ...strictest, remaining: Math.min(...limits.map(({ remaining }) => remaining)) };
}

/**
 * After a denial, until the same request passes; otherwise until the counter is as good as new. If the request never
 * passes, because its addend is above the limit, it is the latter too, or the whole window if none of it is used: Envoy
 * reads an absent duration as 0, and its clients would come back at once. Absent only for a one-off quota.
 */
export function renderReset({
  allowed,
  retryAfterMs,
  resetAfterMs,
  window,
}: Pick<
  LimitStanding,
  "allowed" | "retryAfterMs" | "resetAfterMs" | "window"
>): DescriptorStatus["durationUntilReset"] {
  const ms = allowed ? resetAfterMs : (retryAfterMs ?? (resetAfterMs || lengthMs(window)));
  if (ms === undefined || !Number.isFinite(ms)) return undefined;
  return { seconds: Math.floor(ms / 1_000), nanos: Math.round(ms % 1_000) * 1_000_000 };
}

const dayMs = 24 * 60 * 60 * 1000;

function lengthMs(window: Window | undefined): number | undefined {
  const per = window?.per ?? { kind: "never" };
  if (per.kind === "never") return undefined;
  return per.kind === "ms" ? per.ms : per.unit === "day" ? dayMs : 30 * dayMs;
}

const units: readonly { readonly unit: Unit; readonly ms: number }[] = [
  { unit: Unit.SECOND, ms: 1_000 },
  { unit: Unit.MINUTE, ms: 60_000 },
  { unit: Unit.HOUR, ms: 3_600_000 },
  { unit: Unit.DAY, ms: dayMs },
  { unit: Unit.WEEK, ms: 7 * dayMs },
  { unit: Unit.MONTH, ms: 30 * dayMs },
  { unit: Unit.YEAR, ms: 365 * dayMs },
];

/**
 * A window in the available units. One of another length becomes what it lets through in the next longer unit, rounded
 * down; a one-off quota has no unit.
 */
export function renderLimit(window: Window, name: string): WrittenLimit {
  const known = written.get(window);
  if (known?.name === name) return known;
  const limit = writeLimit(window, name);
  written.set(window, limit);
  return limit;
}

/** Windows live as long as their policies, and each nearly always goes by one name. */
const written = new WeakMap<Window, WrittenLimit>();

function writeLimit({ limit, per }: Window, name: string): WrittenLimit {
  if (per.kind === "never") return { requestsPerUnit: clamp(limit), unit: Unit.UNKNOWN, name };
  if (per.kind === "calendar")
    return { requestsPerUnit: clamp(limit), unit: per.unit === "day" ? Unit.DAY : Unit.MONTH, name };
  const { unit, ms } = units.find((one) => one.ms >= per.ms) ?? units.at(-1)!;
  return { requestsPerUnit: clamp((limit * ms) / per.ms), unit, name };
}

function clamp(requests: number): number {
  return Math.min(Math.floor(requests), maxUint32);
}
