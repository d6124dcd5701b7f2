import type { Limit, Policy, Window } from "sluice";
import { renderDuration, renderWindow } from "sluice/internal";
import { defaultPolicyId, readDocument } from "../../control-plane/documents/read-documents.ts";
import type { PolicyDocument } from "../../control-plane/policy-control.ts";
import { everything, isSubjectDimension, type Rule } from "./rule.ts";
import { readRuleNames } from "./rule-names.ts";

/** The rules in a policy, or why it is not one. */
export type ReadRules =
  | { readonly kind: "rules"; readonly rules: readonly [Rule, ...Rule[]] }
  /** `why` continues "the policy …". */
  | { readonly kind: "no_rule"; readonly why: string };

/** S2's vocabulary has no other name for a subject without a tier. */
export const freeTier = "free";

/**
 * A policy as rules: the one for subjects without a tier, if there is one, then one for each tier. Fields that rules do
 * not express (the owner, behaviour in an outage, …) are permitted, and stay when a rule is changed.
 */
export function readRules(id: string, document: PolicyDocument): ReadRules {
  if (id === defaultPolicyId) return { kind: "no_rule", why: "is the default policy" };
  // It replaces other policies, which are not read here.
  const { replaces, ...rest } = document;
  const { policy } = readDocument(id, { ...rest, id });
  if (policy === undefined || policy === "none") return { kind: "no_rule", why: "cannot be read" };
  const replaced = Array.isArray(replaces) ? replaces.length > 0 : replaces !== undefined;
  const reasons = [...(replaced ? ["replaces others"] : []), ...whyNoRule(policy)];
  if (reasons.length > 0) return { kind: "no_rule", why: reasons.join(", ") };
  return { kind: "rules", rules: rulesFromPolicy(policy) };
}

function rulesFromPolicy(policy: Policy): readonly [Rule, ...Rule[]] {
  const limit = policy.limits[0]!;
  const tiers = Object.entries(limit.tiers);
  const names = readRuleNames(
    policy.description,
    tiers.map(([tier]) => tier),
  );
  const rule = (tier: string | undefined, [window]: readonly Window[]): Rule => ({
    policy: policy.id,
    tier,
    name: tier === undefined ? names.own : names.byTier.get(tier),
    dimension: limit.by[0]!,
    value: policy.match.dimensions[limit.by[0]!]![0]!,
    endpoint: policy.match.endpoint ?? everything,
    algorithm: limit.algorithm,
    limit: window!.limit,
    windowSeconds: wholeSeconds(window!)!,
    burst: window!.burst,
  });
  const own = limit.windows.length === 0 ? [] : [rule(undefined, limit.windows)];
  // A limit has windows, or tiers that have windows.
  return [...own, ...tiers.map(([tier, { windows }]) => rule(tier, windows))] as unknown as readonly [Rule, ...Rule[]];
}

function whyNoRule(policy: Policy): readonly string[] {
  const { match, limits } = policy;
  const [limit, ...more] = limits;
  const reasons: string[] = [];
  if (match.domain !== "default") reasons.push(`is of the domain ${match.domain}`);
  if (match.methods.length > 0) reasons.push(`is only for the methods ${match.methods.join(", ")}`);
  if (policy.mode === "shadow") reasons.push("is in shadow mode");
  if (policy.unlimited) reasons.push("is without limits");
  if (Object.keys(policy.allow).length > 0) reasons.push("has an allow list");
  if (Object.keys(policy.deny).length > 0) reasons.push("has a deny list");
  if (policy.cost.length > 0) reasons.push("sets the cost of requests");
  if (policy.validFromMs !== undefined) reasons.push("has a valid_from");
  if (policy.rollout !== undefined) reasons.push("is for a share of subjects");
  if (more.length > 0) reasons.push(`has ${limits.length} limits`);
  else if (limit !== undefined) reasons.push(...whyNotOneLimit(policy, limit));
  else if (!policy.unlimited) reasons.push("has no limit");
  return reasons;
}

function whyNotOneLimit({ match }: Policy, limit: Limit): readonly string[] {
  const reasons: string[] = [];
  const [dimension] = limit.by;
  const conditions = Object.entries(match.dimensions);
  const [condition] = conditions;
  if (limit.by.length !== 1) reasons.push(`counts by ${limit.by.length === 0 ? "nothing" : limit.by.join(" and ")}`);
  else if (!isSubjectDimension(dimension!)) reasons.push(`counts by ${dimension}`);
  else if (conditions.length !== 1 || condition![0] !== dimension || condition![1].length !== 1) {
    const asked = conditions.map(([name]) => name).join(", ") || "no dimension";
    reasons.push(`names ${asked} in its match; a rule names one value of ${dimension}, or *`);
  }
  if (limit.distinct !== undefined) reasons.push(`counts distinct values of ${limit.distinct}`);
  if (limit.blockForMs > 0) reasons.push(`blocks for ${renderDuration(limit.blockForMs)} after a denial`);
  if (limit.windows.length > 0) reasons.push(...whyNotOneWindow(limit.windows, ""));
  for (const [tier, { windows }] of Object.entries(limit.tiers)) {
    if (tier === freeTier)
      reasons.push(`has a tier called ${freeTier}, which rules reserve for subjects without a tier`);
    else reasons.push(...whyNotOneWindow(windows, ` for the tier ${tier}`));
  }
  return reasons;
}

function whyNotOneWindow(windows: readonly Window[], suffix: string): readonly string[] {
  const [window] = windows;
  if (windows.length !== 1) return [`has ${windows.length} windows${suffix}`];
  if (wholeSeconds(window!) === undefined) return [`has the window ${renderWindow(window!)}${suffix}`];
  return [];
}

/** Whole seconds; undefined for any other duration. */
function wholeSeconds({ per }: Window): number | undefined {
  return per.kind === "ms" && per.ms % 1_000 === 0 ? per.ms / 1_000 : undefined;
}
