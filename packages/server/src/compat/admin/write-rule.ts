import { type Limit, renderDuration } from "sluice";
import type { PolicyDocument } from "../../control-plane/control-plane.ts";
import { readRules } from "./read-rules.ts";
import { everything, type Rule } from "./rule.ts";
import { readRuleNames, renderRuleNames } from "./rule-names.ts";

type Fields = Readonly<Record<string, unknown>>;

/**
 * The policy with a rule in it, in place of the one for its tier. `before` is the policy that has rules already, of which everything
 * that no rule speaks of stays as it is; undefined where there is none yet.
 */
export function writeRule(before: PolicyDocument | undefined, rule: Rule): PolicyDocument {
  const { id: _, description, match, limits, ...kept } = before ?? {};
  const limit = firstOf(limits);
  const tiers = Object.entries((limit.tiers ?? {}) as Limit["tiers"]);
  const written =
    rule.tier === undefined
      ? { ...limit, by: [rule.dimension], algorithm: rule.algorithm, windows: [windowOf(rule, limit.windows)] }
      : {
          by: [rule.dimension],
          algorithm: rule.algorithm,
          ...limit,
          tiers: Object.fromEntries([...tiers, tierOf(rule, tiers)]),
        };
  const named = renamed(description, rule, tiers);
  return {
    id: rule.policy,
    ...(named !== undefined && { description: named }),
    ...kept,
    match: rule.tier === undefined || match === undefined ? matchOf(rule) : match,
    limits: [written],
  };
}

/** The policy without the rule for subjects that have no tier, which leaves those of tiers. */
export function removeOwn(before: PolicyDocument, policy: string): PolicyDocument {
  const { id: _, description, limits, ...kept } = before;
  const { windows: __, ...limit } = firstOf(limits);
  const { byTier, otherLines } = namesOf(description, Object.entries((limit.tiers ?? {}) as Limit["tiers"]));
  const named = renderRuleNames({ own: undefined, byTier, otherLines });
  return { id: policy, ...(named !== undefined && { description: named }), ...kept, limits: [limit] };
}

/** The policy without the rule of a tier. */
export function removeTier(before: PolicyDocument, policy: string, tier: string): PolicyDocument {
  const { id: _, description, limits, ...kept } = before;
  const { tiers: written, ...limit } = firstOf(limits);
  const tiers = Object.entries((written ?? {}) as Limit["tiers"]);
  const left = tiers.filter(([one]) => one !== tier);
  const { own, byTier, otherLines } = namesOf(description, tiers);
  const named = renderRuleNames({ own, byTier: new Map([...byTier].filter(([one]) => one !== tier)), otherLines });
  return {
    id: policy,
    ...(named !== undefined && { description: named }),
    ...kept,
    limits: [left.length === 0 ? limit : { ...limit, tiers: Object.fromEntries(left) }],
  };
}

/** The rule of a policy that is for this tier. */
export function findRule(policy: string, document: PolicyDocument, tier: string | undefined): Rule | undefined {
  const read = readRules(policy, document);
  return read.kind === "rules" ? read.rules.find((rule) => rule.tier === tier) : undefined;
}

function firstOf(limits: unknown): Fields {
  return Array.isArray(limits) ? (limits[0] as Fields) : {};
}

function matchOf({ dimension, value, endpoint }: Rule): Fields {
  return { ...(endpoint !== everything && { endpoint }), [dimension]: value };
}

function tierOf(rule: Rule, tiers: readonly (readonly [string, { readonly windows: unknown }])[]): [string, Fields] {
  const before = tiers.find(([tier]) => tier === rule.tier)?.[1].windows;
  return [rule.tier!, { windows: [windowOf(rule, before)] }];
}

/** A window's name is part of its counters' names, and no rule's to change. */
function windowOf({ limit, windowSeconds, burst }: Rule, before: unknown): Fields {
  const [window] = Array.isArray(before) ? (before as readonly unknown[]) : [before];
  const name = typeof window === "object" && window !== null ? (window as { name?: unknown }).name : undefined;
  const per = renderDuration(windowSeconds * 1_000);
  return { ...(name !== undefined && { name }), limit, per, ...(burst !== limit && { burst }) };
}

function namesOf(description: unknown, tiers: readonly (readonly [string, unknown])[]) {
  return readRuleNames(
    typeof description === "string" ? description : undefined,
    tiers.map(([tier]) => tier),
  );
}

function renamed(description: unknown, { tier, name }: Rule, tiers: readonly (readonly [string, unknown])[]) {
  const names = namesOf(description, tiers);
  if (tier === undefined) return renderRuleNames({ ...names, own: name });
  const byTier = new Map(names.byTier);
  if (name === undefined) byTier.delete(tier);
  else byTier.set(tier, name);
  return renderRuleNames({ ...names, byTier });
}
