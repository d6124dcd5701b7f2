import type { StoreView } from "@sluice/sql";
import type { Limit, Policy, PolicySet, Problem } from "sluice";
import { printable } from "sluice/internal";
import { canonicalSubject } from "../documents/canonical-subject.ts";
import { composeInTurns } from "../documents/compose-policy-set.ts";
import { mergePolicies } from "../documents/merge-policies.ts";
import { readStoredRows } from "../documents/stored-rows.ts";
import type { ControlContext } from "./control-context.ts";
import { type CountedLimit, limitsBy } from "./effective-limits.ts";

/** Warnings about the tier and limits of a subject: all of it may be stored, and some of it has no effect. */

/** The policies that decide once every node has applied the stored ones. */
export async function readPoliciesInForce(context: ControlContext, view: StoreView): Promise<PolicySet> {
  const { reader, precedence, nowMs } = context;
  const files = context.files();
  const { policySet } = await composeInTurns(await readStoredRows(view), nowMs(), { files, reader });
  return files === undefined ? policySet : mergePolicies(files, policySet, precedence).policySet;
}

/** If a policy file has the subject and wins, nothing stored about it applies. */
export function warnInFiles(
  { files, precedence, ipv6PrefixBits }: ControlContext,
  dimension: string,
  value: string,
): readonly Problem[] {
  const isThere = files()?.subjects.some(
    (one) => one.dimension === dimension && canonicalSubject(dimension, one.value, ipv6PrefixBits) === value,
  );
  if (precedence !== "files" || isThere !== true) return [];
  return [
    {
      path: [],
      message: `a policy file of the server has ${dimension} ${printable(value)} as well, which wins; the stored values are not in force`,
    },
  ];
}

const mostNamed = 10;

/** A tier changes only limits that have windows for it, and that count by the subject. */
export function warnTier(policySet: PolicySet, dimension: string, tier: string): readonly Problem[] {
  const limits = allLimits(policySet);
  const knowing = limits.filter(({ limit }) => Object.hasOwn(limit.tiers, tier));
  if (knowing.some(({ limit }) => limit.by.includes(dimension))) return [];
  if (knowing.length > 0) {
    const names = knowing.map(({ policy, limit }) => `${policy.id} (by ${limit.by.join(" and ") || "nothing"})`);
    return [
      {
        path: ["tier"],
        message: `changes nothing: no limit that counts by ${dimension} has windows for the tier ${printable(tier)}; those that have are in ${list(names)}`,
      },
    ];
  }
  const known = [...new Set(limits.flatMap(({ limit }) => Object.keys(limit.tiers)))].sort();
  const others = known.length === 0 ? "no policy has any tier" : `policies have the tiers ${list(known)}`;
  return [
    { path: ["tier"], message: `changes nothing: no policy has windows for the tier ${printable(tier)}; ${others}` },
  ];
}

/** The limits of a policy whose windows a subject's custom windows replace. */
export function limitsReplacedBy(
  policySet: PolicySet,
  dimension: string,
  value: string,
  { policy, limit }: { readonly policy: string; readonly limit?: string | undefined },
  nowMs: number,
): readonly CountedLimit[] {
  return limitsBy(policySet, dimension, value, nowMs).filter(
    (one) =>
      one.policy.id === policy && one.limit.by.includes(dimension) && (limit === undefined || one.scope === limit),
  );
}

/** Custom windows of a subject replace those of limits that count by it, and of no others. */
export function warnLimit(
  policySet: PolicySet,
  dimension: string,
  value: string,
  request: { readonly policy: string; readonly limit?: string | undefined },
  nowMs: number,
): readonly Problem[] {
  if (limitsReplacedBy(policySet, dimension, value, request, nowMs).length > 0) return [];
  const own = allLimits(policySet).filter(({ policy }) => policy.id === request.policy);
  const counting = own.filter(({ limit, scope }) => limit.by.includes(dimension) && (request.limit ?? scope) === scope);
  const named =
    request.limit === undefined ? `policy ${request.policy}` : `the limit ${request.limit} of policy ${request.policy}`;
  if (counting.length > 0)
    return [
      {
        path: ["policy"],
        message: `changes nothing now: policy ${request.policy} does not apply to ${dimension} ${printable(value)}, by its match or its dates`,
      },
    ];
  const by = [...new Set(own.map(({ limit }) => limit.by.join(" and ") || "nothing"))];
  return [
    {
      path: [request.limit === undefined ? "policy" : "limit"],
      message: `changes nothing: ${named} does not count by ${dimension}${by.length === 0 ? "" : `; its limits count by ${list(by)}`}`,
    },
  ];
}

/** A block by a policy that does not exist keeps no request out. */
export function warnBlock({ policies, fallback }: PolicySet, named: readonly string[]): readonly Problem[] {
  const known = new Set([...policies.map(({ id }) => id), ...(fallback === undefined ? [] : [fallback.id])]);
  return named.flatMap((id, index) =>
    known.has(id)
      ? []
      : [{ path: ["policies", index], message: `changes nothing: no policy has the id ${printable(id)}` }],
  );
}

function allLimits({ policies, fallback }: PolicySet): readonly {
  readonly policy: Policy;
  readonly limit: Limit;
  readonly scope: string;
}[] {
  const all = fallback === undefined ? policies : [...policies, fallback];
  return all.flatMap((policy) =>
    policy.limits.map((limit) => ({ policy, limit, scope: limit.name ?? (limit.by.join(",") || "global") })),
  );
}

function list(words: readonly string[]): string {
  const shown = words.slice(0, mostNamed).map(printable).join(", ");
  return words.length > mostNamed ? `${shown} and ${words.length - mostNamed} more` : shown;
}
