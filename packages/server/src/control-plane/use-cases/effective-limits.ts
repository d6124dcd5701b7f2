import { isDeepStrictEqual } from "node:util";
import {
  createCidrSet,
  inRollout,
  type Limit,
  type Limiter,
  type Policy,
  type PolicySet,
  parseCidr,
  parseIp,
  SluiceError,
  StoreUnavailable,
  type SubjectEntry,
  type SubjectLimit,
} from "sluice";
import { limitScope } from "sluice/store";
import type { EffectiveLimit, WindowUsage } from "../control-plane.ts";
import { dimensionsOf } from "../documents/canonical-subject.ts";

/** Who a request is by where no policy says, as far as one dimension tells. */
const identifying: ReadonlySet<string> = new Set(["user", "api_key", "limit_key", "identifier", "tenant", "org", "ip"]);

/** A limit of a policy that counts by a dimension. */
export interface CountedLimit {
  readonly policy: Policy;
  readonly limit: Limit;
  readonly scope: string;
  /** Whether the dimension alone tells which counter it is. */
  readonly alone: boolean;
}

/** The limits in force that are by a dimension, as far as its value tells which those are. */
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
        const isFallback = policy === policySet.fallback && identifying.has(dimension) && isBySubject(limit);
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
  // In a trial by something else, both versions may be the one.
  if (trial !== undefined && !(trial.shadow && trial.side === "old")) {
    if (trial.percent === 0 || trial.percent >= 100) return trial.percent >= 100 === (trial.side === "new");
    if (trial.by === dimension && inRollout(id, value, trial.percent) !== (trial.side === "new")) return false;
  }
  const wanted = match.dimensions[dimension];
  if (wanted === undefined || wanted.includes("*")) return true;
  if (dimension !== "ip") return wanted.includes(value);
  const address = parseIp(dimensionsOf(dimension, value).ip ?? "");
  return address !== undefined && createCidrSet(wanted.filter((range) => parseCidr(range) !== undefined)).has(address);
}

/** A limit as it is for one subject, with where its windows come from. */
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

/** Policies whose counters are looked at for one answer. */
const maxRead = 200;
const atOnce = 16;

/** How the counters of a limit stand, as it is for the subject. */
export type UsageOf = (limit: CountedLimit, effective: Omit<EffectiveLimit, "usage">) => EffectiveLimit["usage"];

interface Reading {
  readonly policy: string;
  readonly scope: string;
  readonly shadow: boolean;
  readonly windows: readonly WindowUsage[];
}

/** How the counters of a subject stand, of limits that are by its dimension alone. Nothing is said while they cannot be asked. */
export async function readUsage(
  limiter: Pick<Limiter, "explain">,
  limits: readonly CountedLimit[],
  dimension: string,
  value: string,
): Promise<UsageOf> {
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
    // A change is stored a moment before this node decides by it; but of two versions, the other one's counters tell nothing.
    return (exact ?? (policy.trial === undefined ? fitting[0] : undefined))?.windows;
  };
}

/** Empty where the policy is not in force any more. */
async function readPolicy(
  limiter: Pick<Limiter, "explain">,
  policy: string,
  dimension: string,
  value: string,
): Promise<readonly Reading[]> {
  try {
    const { limits } = await limiter.explain({ policies: [policy], dimensions: dimensionsOf(dimension, value) });
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
