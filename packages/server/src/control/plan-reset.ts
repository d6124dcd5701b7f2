import { dimensionsOf } from "./canonical-subject.ts";
import type { ControlContext } from "./control-context.ts";
import { notFound } from "./control-errors.ts";
import { type CountedLimit, limitsBy } from "./effective-limits.ts";

/** Counters to be forgotten together. */
export interface Reset {
  /** `policy/limit` */
  readonly limits: readonly string[];
  run(): Promise<void>;
}

/**
 * Which counters of a subject are to be forgotten: those by its dimension alone, or with `dimensions` those that a request like it
 * is counted in.
 */
export async function planReset(
  { limiter, nowMs }: ControlContext,
  dimension: string,
  value: string,
  policy: string | undefined,
  dimensions: Readonly<Record<string, string>> | undefined,
  domain: string | undefined,
): Promise<readonly Reset[]> {
  if (dimensions !== undefined) {
    const policies = policy === undefined ? undefined : [policy];
    const request = { policies, domain, dimensions: { ...dimensions, ...dimensionsOf(dimension, value) } };
    const { limits } = await limiter.explain(request);
    return [{ limits: limits.map((one) => `${one.policy}/${one.scope}`), run: () => limiter.reset(request) }];
  }
  const known = limitsBy(limiter.snapshot.policySet, dimension, value, nowMs());
  if (policy !== undefined && !known.some((one) => one.policy.id === policy))
    throw notFound(`a limit by ${dimension} of a policy ${policy}`);
  const meant = known.filter((one) => one.alone && (policy === undefined || one.policy.id === policy));
  const byPolicy = new Map<string, CountedLimit[]>();
  for (const one of meant) byPolicy.set(one.policy.id, [...(byPolicy.get(one.policy.id) ?? []), one]);
  return [...byPolicy].map(([id, limits]) => ({
    limits: [...new Set(limits.map(({ scope }) => `${id}/${scope}`))],
    run: () =>
      limiter.reset({ policies: [id], dimensions: dimensionsOf(dimension, value) }, { by: limits[0]!.limit.by }),
  }));
}
