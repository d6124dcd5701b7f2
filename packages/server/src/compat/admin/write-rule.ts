import type { Limit } from "sluice";
import { renderDuration } from "sluice/internal";
import type { PolicyDocument } from "../../control-plane/policy-control.ts";
import { everything, type Rule } from "./rule.ts";
import { readRuleNames, renderRuleNames } from "./rule-names.ts";

type Fields = Readonly<Record<string, unknown>>;

/**
 * The policy with a rule added, replacing the one for its tier. `before` is the policy that already has rules;
 * everything in it that rules do not express stays. Undefined if there is none yet.
 */
export function writeRule(before: PolicyDocument | undefined, rule: Rule): PolicyDocument {
  const { id: _, description, match, limits, ...kept } = before ?? {};
  const limit = firstLimit(limits);
  const tiers = Object.entries((limit.tiers ?? {}) as Limit["tiers"]);
  const written =
    rule.tier === undefined
      ? { ...limit, by: [rule.dimension], algorithm: rule.algorithm, windows: [renderWindow(rule, limit.windows)] }
      : {
          by: [rule.dimension],
          algorithm: rule.algorithm,
          ...limit,
          tiers: Object.fromEntries([...tiers, renderTier(rule, tiers)]),
        };
  const named = renamed(description, rule, tiers);
  return {
    id: rule.policy,
    ...(named !== undefined && { description: named }),
    ...kept,
    match: rule.tier === undefined || match === undefined ? renderMatch(rule) : match,
    limits: [written],
  };
}

/** The policy without the rule for subjects without a tier, which leaves those of tiers. */
export function removeUntiered(before: PolicyDocument, policy: string): PolicyDocument {
  const { id: _, description, limits, ...kept } = before;
  const { windows: __, ...limit } = firstLimit(limits);
  const { byTier, otherLines } = readNames(description, Object.entries((limit.tiers ?? {}) as Limit["tiers"]));
  const named = renderRuleNames({ own: undefined, byTier, otherLines });
  return { id: policy, ...(named !== undefined && { description: named }), ...kept, limits: [limit] };
}

/** The policy without the rule of a tier. */
export function removeTier(before: PolicyDocument, policy: string, tier: string): PolicyDocument {
  const { id: _, description, limits, ...kept } = before;
  const { tiers: written, ...limit } = firstLimit(limits);
  const tiers = Object.entries((written ?? {}) as Limit["tiers"]);
  const left = tiers.filter(([one]) => one !== tier);
  const { own, byTier, otherLines } = readNames(description, tiers);
  const named = renderRuleNames({ own, byTier: new Map([...byTier].filter(([one]) => one !== tier)), otherLines });
  return {
    id: policy,
    ...(named !== undefined && { description: named }),
    ...kept,
    limits: [left.length === 0 ? limit : { ...limit, tiers: Object.fromEntries(left) }],
  };
}

function firstLimit(limits: unknown): Fields {
  return Array.isArray(limits) ? (limits[0] as Fields) : {};
}

function renderMatch({ dimension, value, endpoint }: Rule): Fields {
  return { ...(endpoint !== everything && { endpoint }), [dimension]: value };
}

function renderTier(
  rule: Rule,
  tiers: readonly (readonly [string, { readonly windows: unknown }])[],
): [string, Fields] {
  const before = tiers.find(([tier]) => tier === rule.tier)?.[1].windows;
  return [rule.tier!, { windows: [renderWindow(rule, before)] }];
}

/** A window's name is part of its counters' names, so a rule must not change it. */
function renderWindow({ limit, windowSeconds, burst }: Rule, before: unknown): Fields {
  const [window] = Array.isArray(before) ? (before as readonly unknown[]) : [before];
  const name = typeof window === "object" && window !== null ? (window as { name?: unknown }).name : undefined;
  const per = renderDuration(windowSeconds * 1_000);
  return { ...(name !== undefined && { name }), limit, per, ...(burst !== limit && { burst }) };
}

function readNames(description: unknown, tiers: readonly (readonly [string, unknown])[]) {
  return readRuleNames(
    typeof description === "string" ? description : undefined,
    tiers.map(([tier]) => tier),
  );
}

function renamed(description: unknown, { tier, name }: Rule, tiers: readonly (readonly [string, unknown])[]) {
  const names = readNames(description, tiers);
  if (tier === undefined) return renderRuleNames({ ...names, own: name });
  const byTier = new Map(names.byTier);
  if (name === undefined) byTier.delete(tier);
  else byTier.set(tier, name);
  return renderRuleNames({ ...names, byTier });
}
