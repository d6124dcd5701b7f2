/**
 * The domain/prefix format: `{ "domains": [{ domain, prefix, rate: { capacity, leak_rate_per_second } }] }`, or with
 * several rates, `policies: [{ name, flow_rate_per_second, burst_capacity }]`. Each entry is a leaky bucket for every
 * `limit_key` of its prefix.
 */
import { defaultPolicy } from "../policy/default-policy.ts";
import { dimensionValue, domainName, policyId, windowName } from "../policy/names.ts";
import { finishWindow } from "../policy/parse-window.ts";
import type { Policy, Window } from "../policy/policy.ts";
import { maxPolicies, type ReadPolicies, sited } from "../policy/read-policy-document.ts";
import { listOf } from "../shape/list-shapes.ts";
import { objectOf } from "../shape/object-shapes.ts";
import { invalid, Reading } from "../shape/reading.ts";
import { number, refine, type Shape } from "../shape/shape.ts";

const positive = refine(number(), (value, reading) =>
  value > 0 ? value : reading.problem(`must be more than 0, but is ${value}`),
);

const perSecond = { kind: "ms", ms: 1_000 } as const;

const rate: Shape<Window> = refine(
  objectOf({ capacity: positive, leak_rate_per_second: positive }),
  ({ capacity, leak_rate_per_second: limit }, reading) =>
    finishWindow({ limit, per: perSecond, burst: capacity }, reading, {
      limit: "leak_rate_per_second",
      burst: "capacity",
    }),
);

const namedRate: Shape<Window> = refine(
  objectOf({ flow_rate_per_second: positive, burst_capacity: positive }, { name: windowName }),
  ({ flow_rate_per_second: limit, burst_capacity: burst, ...named }, reading) =>
    finishWindow({ limit, per: perSecond, burst, ...named }, reading, {
      limit: "flow_rate_per_second",
      burst: "burst_capacity",
    }),
);

const entry: Shape<Policy> = refine(
  objectOf({ domain: domainName, prefix: dimensionValue }, { rate, policies: listOf(namedRate, { min: 1, max: 16 }) }),
  ({ domain, prefix, ...written }, reading, raw) => {
    const rates = ["rate", "policies"].filter((key) => Object.hasOwn(raw as object, key));
    if (rates.length !== 1)
      reading.problem(rates.length === 0 ? "must have a rate, or policies" : "must have a rate or policies, not both");
    const id = policyId.read(`${domain}/${prefix}`, reading);
    if (id === invalid) return invalid;
    const windows = written.policies ?? (written.rate === undefined ? [] : [written.rate]);
    return {
      ...defaultPolicy,
      id,
      match: { domain, methods: [], dimensions: { prefix: [prefix] } },
      limits: [{ ...defaultPolicy.limits[0]!, by: ["limit_key"], algorithm: "leaky_bucket", windows }],
      onFailureChosen: false,
    };
  },
);

const documentShape = objectOf({ domains: listOf(sited(entry), { max: maxPolicies }) });

export function readDomains(document: unknown): ReadPolicies {
  const reading = new Reading();
  const written = documentShape.read(document, reading);
  const policies = written === invalid ? [] : written.domains;
  return {
    policies,
    ids: policies.map(({ value, path }) => ({ value: value.id, path: [...path, "prefix"] })),
    fallback: "absent",
    subjects: [],
    problems: reading.problems,
  };
}
