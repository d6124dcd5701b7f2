import { isDeepStrictEqual } from "node:util";
import {
  createCidrSet,
  type Limit,
  type Limiter,
  type Policy,
  type PolicySet,
  SluiceError,
  StoreUnavailable,
  type SubjectEntry,
} from "sluice";
import { identifyingDimensions, inRollout, limitScope, parseCidr, parseIp, type SubjectLimit } from "sluice/internal";
import { dimensionsFromSubject } from "../documents/canonical-subject.ts";
import type { EffectiveLimit, WindowUsage } from "../subject-control.ts";

/** A limit of a policy that counts by a dimension. */
export interface CountedLimit {
  readonly policy: Policy;
  readonly limit: Limit;
  readonly scope: string;
  /** Whether the dimension alone determines the counter. */
  readonly alone: boolean;
}

/** The limits in force that count by a dimension, as far as its value determines them. */
export function limitsBy(
  policySet: PolicySet,
  dimension: string,
  value: string,
  nowMs: number,
): readonly CountedLimit[] {
  const policies = policySet.fallback === undefined ? policySet.policies : [...policySet.policies, policySet.fallback];
  return policies
    .filter((policy) => mayApply(policy, dimension, value, nowMs))
    .flatMap((policy) =>
      policy.limits.flatMap((limit): readonly CountedLimit[] => {
        const isFallback =
          policy === policySet.fallback && identifyingDimensions.includes(dimension) && isBySubject(limit);
        if (!isFallback && !limit.by.includes(dimension)) return [];
        return [{ policy, limit, scope: limitScope(limit), alone: limit.by.length === 1 }];
      }),
    );
}

function isBySubject({ by }: Limit): boolean {
  return by.length === 1 && by[0] === "subject";
}

function mayApply(policy: Policy, dimension: string, value: string, nowMs: number): boolean {
  const { validFromMs, rollout, trial, match, id } = policy;
  if (validFromMs !== undefined && validFromMs > nowMs) return false;
  if (rollout?.by === dimension && !inRollout(id, value, rollout.percent)) return false;
  // In a rollout by another dimension, either version may apply.
  if (trial !== undefined && !(trial.shadow && trial.side === "old")) {
    if (trial.percent === 0 || trial.percent >= 100) return trial.percent >= 100 === (trial.side === "new");
    if (trial.by === dimension && inRollout(id, value, trial.percent) !== (trial.side === "new")) return false;
  }
  const wanted = match.dimensions[dimension];
  if (wanted === undefined || wanted.includes("*")) return true;
  if (dimension !== "ip") return wanted.includes(value);
  const address = parseIp(dimensionsFromSubject(dimension, value).ip ?? "");
  return address !== undefined && createCidrSet(wanted.filter((range) => parseCidr(range) !== undefined)).has(address);
}

/** A limit as it applies to one subject, with the source of its windows. */
export function effectiveLimit(
  { policy, limit, scope }: CountedLimit,
  dimension: string,
  entry: SubjectEntry | undefined,
  nowMs: number,
): Omit<EffectiveLimit, "usage"> {
  const own = limit.by.includes(dimension) ? findOwn(entry, policy.id, scope, nowMs) : undefined;
  const tier = limit.by.includes(dimension) ? entry?.tier : undefined;
  const ofTier = tier === undefined ? undefined : limit.tiers[tier];
  const shared = {
    policy: policy.id,
    version: policy.version,
    limit: scope,
    by: limit.by,
    algorithm: limit.algorithm,
    mode: policy.trial?.shadow === true && policy.trial.side === "new" ? ("shadow" as const) : policy.mode,
  };
  if (own !== undefined)
    return {
      ...shared,
      windows: own.windows,
      source: own.untilMs === undefined ? { kind: "custom" } : { kind: "override", untilMs: own.untilMs },
    };
  if (tier !== undefined && ofTier !== undefined)
    return { ...shared, windows: ofTier.windows, source: { kind: "tier", tier } };
  return { ...shared, windows: limit.windows, source: { kind: "policy" } };
}

function findOwn(
  entry: SubjectEntry | undefined,
  policy: string,
  scope: string,
  nowMs: number,
): SubjectLimit | undefined {
  return entry?.limits.find(
    (own) =>
      own.policy === policy &&
      (own.limit === undefined || own.limit === scope) &&
      (own.untilMs === undefined || nowMs < own.untilMs),
  );
}

/** How many policies' counters are read for one answer. */
const maxRead = 200;
const atOnce = 16;

/** The state of the counters of a limit, as it applies to the subject. */
export type FindUsage = (limit: CountedLimit, effective: Omit<EffectiveLimit, "usage">) => EffectiveLimit["usage"];

interface Reading {
  readonly policy: string;
  readonly scope: string;
  readonly shadow: boolean;
  readonly windows: readonly WindowUsage[];
}

/**
 * The state of a subject's counters, for limits that count by its dimension alone. Empty while counters are
 * unavailable.
 */
export async function readUsage(
  limiter: Pick<Limiter, "explain">,
  limits: readonly CountedLimit[],
  dimension: string,
  value: string,
): Promise<FindUsage> {
  const alone = limits.filter((limit) => limit.alone);
  const policies = [...new Set(alone.map(({ policy }) => policy.id))].slice(0, maxRead);
  const readings: Reading[] = [];
  try {
    for (let first = 0; first < policies.length; first += atOnce) {
      const some = policies.slice(first, first + atOnce);
      const read = await Promise.all(some.map((policy) => readPolicy(limiter, policy, dimension, value)));
      readings.push(...read.flat());
    }
  } catch (error) {
    if (!(error instanceof StoreUnavailable)) throw error;
    return () => undefined;
  }
  return ({ policy, scope, alone: tells }, { windows, mode }) => {
    if (!tells) return undefined;
    const fitting = readings.filter(
      (one) => one.policy === policy.id && one.scope === scope && one.shadow === (mode === "shadow"),
    );
    const exact = fitting.find((one) =>
      isDeepStrictEqual(
        one.windows.map(({ window }) => window),
        windows,
      ),
    );
    // A change is stored a moment before this node applies it; but the counters of the other version say nothing about
    // this one.
    return (exact ?? (policy.trial === undefined ? fitting[0] : undefined))?.windows;
  };
}

/** Empty if the policy is no longer in force. */
async function readPolicy(
  limiter: Pick<Limiter, "explain">,
  policy: string,
  dimension: string,
  value: string,
): Promise<readonly Reading[]> {
  try {
    const { limits } = await limiter.explain({
      policies: [policy],
      dimensions: dimensionsFromSubject(dimension, value),
    });
    return limits.map(({ scope, shadow, windows }) => ({
      policy,
      scope,
      shadow,
      windows: windows.map(({ window, remaining, resetAfterMs }) => ({
        window: window.source,
        used: Math.max(window.capacity - remaining, 0),
        remaining,
        resetAfterMs,
      })),
    }));
  } catch (error) {
    if (error instanceof SluiceError && error.code === "policy_not_found") return [];
    throw error;
  }
}
