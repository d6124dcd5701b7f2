/**
 * The rate_limits format: `rate_limits: [{ name, scope, resource, capacity, refill_rate }]` and a `runtime` block. Each
 * entry is a token bucket for every value of its scope; a later entry for the same scope and resource is a tier of the
 * first, named after itself.
 */
import { defaultPolicy } from "../policy/default-policy.ts";
import { dimensionName, dimensionValue, policyId, windowName } from "../policy/names.ts";
import { finishWindow } from "../policy/parse-window.ts";
import type { Limit, Policy, Window } from "../policy/policy.ts";
import { maxPolicies, type ReadPolicies, type Sited, sited } from "../policy/read-policy-document.ts";
import { listOf } from "../shape/list-shapes.ts";
import { objectOf } from "../shape/object-shapes.ts";
import { invalid, Reading } from "../shape/reading.ts";
import { integer, number, refine, type Shape } from "../shape/shape.ts";
import { type RateLimitsRuntime, runtimeShape } from "./rate-limits-runtime.ts";

interface Entry {
  readonly id: string;
  readonly scope: string;
  readonly resource: string;
  readonly name: string | undefined;
  readonly window: Window;
}

const entry: Shape<Entry> = refine(
  objectOf(
    { scope: dimensionName, capacity: integer({ min: 1 }), refill_rate: number({ min: 0 }) },
    { resource: dimensionValue, name: windowName, min_refill_interval_ms: number({ min: 0 }) },
  ),
  ({ scope, resource = "default", capacity, refill_rate: limit, name }, reading) => {
    if (limit > capacity * 1000)
      return reading.problem(`must be at most 1000 × the capacity, ${capacity * 1000}, but is ${limit}`, "refill_rate");
    const id = policyId.read(`${scope}:${resource}`, reading);
    // Windows stay nameless, so that a subject that changes its tier keeps its counter.
    const written = { limit, per: { kind: "ms", ms: 1_000 }, burst: capacity } as const;
    const window = finishWindow(written, reading, { limit: "refill_rate", burst: "capacity" });
    return id === invalid || window === invalid ? invalid : { id, scope, resource, name, window };
  },
);

const documentShape = objectOf({ rate_limits: listOf(sited(entry), { max: maxPolicies }) }, { runtime: runtimeShape });

export function readRateLimits(document: unknown): ReadPolicies & { readonly runtime?: RateLimitsRuntime } {
  const reading = new Reading();
  const written = documentShape.read(document, reading);
  const { rate_limits: entries, runtime } = written === invalid ? { rate_limits: [], runtime: undefined } : written;
  const policies = policiesFromEntries(entries, runtime, reading);
  return {
    policies,
    ids: policies.map(({ value, path }) => ({ value: value.id, path })),
    fallback: "absent",
    subjects: [],
    problems: reading.problems,
    ...(runtime === undefined ? undefined : { runtime }),
  };
}

function policiesFromEntries(
  entries: readonly Sited<Entry>[],
  runtime: RateLimitsRuntime | undefined,
  reading: Reading,
): readonly Sited<Policy>[] {
  const groups = new Map<string, Sited<Entry>[]>();
  for (const one of entries) {
    const { id, name } = one.value;
    const group = groups.get(id) ?? [];
    groups.set(id, group);
    const namesake = group.find((other) => other.value.name === name);
    if (namesake === undefined && (group.length === 0 || name !== undefined)) group.push(one);
    else
      reading.problem(
        `is for ${id} again; give it a name that no other entry for ${id} has, which makes it a tier`,
        ...one.path,
      );
  }
  return [...groups.values()].map(([first, ...tiers]) => ({
    value: policyFromGroup(
      first!.value,
      tiers.map(({ value }) => value),
      runtime,
    ),
    path: first!.path,
  }));
}

function policyFromGroup(first: Entry, others: readonly Entry[], runtime: RateLimitsRuntime | undefined): Policy {
  const tiers: Record<string, Limit["tiers"][string]> = Object.create(null);
  for (const { name, window } of others) tiers[name!] = { windows: [window] };
  return {
    ...defaultPolicy,
    id: first.id,
    ...(first.name === undefined ? undefined : { description: first.name }),
    match: {
      domain: "default",
      methods: [],
      dimensions: { scope: [first.scope], resource: [first.resource] },
    },
    limits: [
      {
        ...defaultPolicy.limits[0]!,
        by: first.scope === "global" ? [] : [first.scope],
        algorithm: "token_bucket",
        windows: [first.window],
        tiers,
      },
    ],
    onFailure: runtime?.failOpen === false ? "closed" : "open",
    onFailureChosen: runtime?.failOpen !== undefined,
  };
}
