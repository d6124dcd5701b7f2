import { randomUUID } from "node:crypto";
import { type Problem, SluiceError } from "sluice";
import { renameProblems } from "../../control-plane/admin-api/rename-problems.ts";
import type { Changed, ExpectingOptions } from "../../control-plane/change.ts";
import { invalidField, invalidRequest, notFound } from "../../control-plane/control-errors.ts";
import { createYield } from "../../control-plane/create-yield.ts";
import { defaultPolicyId, readDocument } from "../../control-plane/documents/read-documents.ts";
import type { PolicyControl, StoredPolicy } from "../../control-plane/policy-control.ts";
import type { Actor } from "../../data-plane/access/actor.ts";
import { VersionConflict } from "../../data-plane/service/version-conflict.ts";
import { readRules } from "./read-rules.ts";
import { type Rule, renderRuleId, renderRuleKey, splitRuleId } from "./rule.ts";
import { type RuleVocabulary, renameProblem, type WrittenRule } from "./rule-vocabulary.ts";
import { removeTier, removeUntiered, writeRule } from "./write-rule.ts";

export type RulePolicies = Pick<PolicyControl, "list" | "get" | "put" | "delete">;

/** A rule, and its policy. */
export interface FoundRule {
  readonly rule: Rule;
  readonly stored: StoredPolicy;
}

export interface ChangedRule extends Omit<Changed<unknown>, "value"> {
  readonly value: FoundRule;
}

/** Throws if there is no such rule, or if its policy is not a rule. */
export async function findRule(
  policies: RulePolicies,
  actor: Actor,
  id: string,
): Promise<FoundRule & { rules: readonly Rule[] }> {
  const { policy, tier } = splitRuleId(id);
  const stored = await policies.get(actor, policy);
  const read = readRules(policy, stored.document);
  if (read.kind === "no_rule") throw notARule(stored.id, read.why);
  const rule = findTierRule(read.rules, tier);
  if (rule === undefined) throw notFound(`the rule ${id}`);
  return { rule, stored, rules: read.rules };
}

/**
 * The rule of a tier. The only rule of a policy is also found by the policy's id, which it may have been created with.
 */
export function findTierRule(rules: readonly Rule[], tier: string | undefined): Rule | undefined {
  return rules.find((one) => one.tier === tier) ?? (tier === undefined && rules.length === 1 ? rules[0] : undefined);
}

/** Creates a rule: as a new policy, or in the policy that has the rules of other tiers. */
export async function createRule(
  policies: RulePolicies,
  actor: Actor,
  written: WrittenRule,
  vocabulary: RuleVocabulary,
  change: ExpectingOptions,
): Promise<ChangedRule> {
  const given = written.ruleId === undefined ? undefined : splitRuleId(written.ruleId);
  if (given?.policy === defaultPolicyId)
    throw invalidField([vocabulary.fields.id], `must not be ${defaultPolicyId}, which is the default policy`);
  const tier = written.tier === undefined ? given?.tier : written.tier.of;
  if (tier === undefined && given?.tier === undefined) {
    return createUntiered(policies, actor, written, vocabulary, change);
  }
  if (tier === undefined || (given?.tier !== undefined && given.tier !== tier))
    throw invalidField(
      [vocabulary.fields.id],
      `names the tier ${given?.tier}, and ${vocabulary.fields.tier} names another`,
    );
  const siblings =
    given?.tier === undefined
      ? await findSiblingsByKey(policies, actor, written)
      : await findSiblings(policies, actor, given.policy);
  if (siblings === undefined) {
    const rule = completeRule(written, given?.policy ?? randomUUID(), tier, undefined);
    return put(policies, actor, undefined, rule, vocabulary, { ...change, expected: 0 });
  }
  const id = renderRuleId({ policy: siblings.stored.id, tier });
  if (given !== undefined && written.ruleId !== id)
    throw invalidField([vocabulary.fields.id], `must be ${id}, or be left out: the rule joins ${siblings.stored.id}`);
  if (siblings.rules.some((rule) => rule.tier === tier))
    throw new SluiceError(
      "already_exists",
      `the rule ${id} is for the same ${renderKeyFields(vocabulary)}; change that one`,
    );
  const rule = completeRule(written, siblings.stored.id, tier, siblings.rules[0]);
  refuseShared(rule, siblings.rules[0]!, vocabulary);
  return put(policies, actor, siblings.stored, rule, vocabulary, { ...change, expected: siblings.stored.version });
}

/** A rule for subjects without a tier: as a new policy, or in the one that has only rules of tiers. */
async function createUntiered(
  policies: RulePolicies,
  actor: Actor,
  written: WrittenRule,
  vocabulary: RuleVocabulary,
  change: ExpectingOptions,
): Promise<ChangedRule> {
  try {
    const rule = completeRule(written, written.ruleId ?? randomUUID(), undefined, undefined);
    return await put(policies, actor, undefined, rule, vocabulary, { ...change, expected: 0 });
  } catch (error) {
    const exists =
      error instanceof SluiceError && (error.code === "already_exists" || error.code === "version_conflict");
    const siblings = exists ? await findSiblingsByKey(policies, actor, written) : undefined;
    if (siblings === undefined || siblings.rules[0]!.tier === undefined) throw error;
    const { id, version } = siblings.stored;
    if (written.ruleId !== undefined && written.ruleId !== id)
      throw invalidField(
        [vocabulary.fields.id],
        `must be ${id}, or be left out: the rule joins ${renderRuleId(siblings.rules[0]!)}`,
      );
    const rule = completeRule(written, id, undefined, siblings.rules[0]);
    refuseShared(rule, siblings.rules[0]!, vocabulary);
    return put(policies, actor, siblings.stored, rule, vocabulary, { ...change, expected: version });
  }
}

/**
 * Replaces the version that the caller saw, or any version if it names none: some callers write rules without versions.
 */
export function replaceRule(
  policies: RulePolicies,
  actor: Actor,
  id: string,
  written: WrittenRule,
  vocabulary: RuleVocabulary,
  change: ExpectingOptions,
): Promise<ChangedRule> {
  return retryUnversioned(change, () => replaceVersion(policies, actor, id, written, vocabulary, change));
}

async function replaceVersion(
  policies: RulePolicies,
  actor: Actor,
  id: string,
  written: WrittenRule,
  vocabulary: RuleVocabulary,
  change: ExpectingOptions,
): Promise<ChangedRule> {
  const { rule: before, stored, rules } = await findRule(policies, actor, id);
  if (written.ruleId !== undefined && written.ruleId !== id)
    throw invalidField([vocabulary.fields.id], `is ${written.ruleId}, and the rule is ${id}; an id cannot change`);
  if (written.tier !== undefined && written.tier.of !== before.tier)
    throw invalidField([vocabulary.fields.tier], "is another one; create a rule for that tier, and delete this one");
  requireExpected(stored, change);
  const others = rules.filter((rule) => rule !== before);
  const rule = completeRule(written, stored.id, before.tier, others[0]);
  if (others.length > 0) refuseShared(rule, others[0]!, vocabulary);
  return put(policies, actor, stored, rule, vocabulary, { ...change, expected: stored.version });
}

/** Deletes a rule, and with the last one its policy. Checks versions like `replaceRule`. */
export function deleteRule(
  policies: RulePolicies,
  actor: Actor,
  id: string,
  change: ExpectingOptions,
): Promise<Omit<Changed<unknown>, "value">> {
  return retryUnversioned(change, () => deleteVersion(policies, actor, id, change));
}

/** How often a change without a version is retried, when others change the same policy. */
const maxTries = 5;

/** The new document is based on the one that was read, so a concurrent change is read again rather than lost. */
async function retryUnversioned<T>({ expected }: ExpectingOptions, go: () => Promise<T>): Promise<T> {
  for (let tries = 1; ; tries++) {
    try {
      return await go();
    } catch (error) {
      if (expected !== undefined || tries === maxTries || !(error instanceof VersionConflict)) throw error;
    }
  }
}

async function deleteVersion(
  policies: RulePolicies,
  actor: Actor,
  id: string,
  change: ExpectingOptions,
): Promise<Omit<Changed<unknown>, "value">> {
  const { rule, stored, rules } = await findRule(policies, actor, id);
  requireExpected(stored, change);
  const seen = { ...change, expected: stored.version };
  if (rules.length === 1) return policies.delete(actor, stored.id, seen);
  const { document } = stored;
  const left =
    rule.tier === undefined ? removeUntiered(document, stored.id) : removeTier(document, stored.id, rule.tier);
  return policies.put(actor, stored.id, left, { ...seen, ruleKey: renderRuleKey(rule) });
}

async function put(
  policies: RulePolicies,
  actor: Actor,
  before: StoredPolicy | undefined,
  rule: Rule,
  vocabulary: RuleVocabulary,
  change: ExpectingOptions,
): Promise<ChangedRule> {
  const document = writeRule(before?.document, rule);
  const { problems } = readDocument(rule.policy, document);
  if (problems.length > 0) throw invalidRequest(problems.map((problem) => renameProblem(vocabulary, rule, problem)));
  const changed = await renameProblems(
    policies.put(actor, rule.policy, document, { ...change, ruleKey: renderRuleKey(rule) }),
    (path) => renameProblem(vocabulary, rule, { path, message: "" }).path,
  );
  const warnings = changed.warnings.map((warning) => renameProblem(vocabulary, rule, warning));
  const kept = readRules(rule.policy, changed.value.document);
  const found = kept.kind === "rules" ? kept.rules.find(({ tier }) => tier === rule.tier) : undefined;
  return { ...changed, warnings, value: { rule: found ?? rule, stored: changed.value } };
}

function completeRule(written: WrittenRule, policy: string, tier: string | undefined, sibling: Rule | undefined): Rule {
  const { name, dimension, value, endpoint, limit, windowSeconds } = written;
  return {
    policy,
    tier,
    name,
    dimension,
    value,
    endpoint,
    algorithm: written.algorithm ?? sibling?.algorithm ?? "token_bucket",
    limit,
    windowSeconds,
    burst: written.burst ?? limit,
  };
}

/** Rules of one policy share everything but the tier, so that cannot be changed for one of them alone. */
function refuseShared(rule: Rule, sibling: Rule, vocabulary: RuleVocabulary): void {
  const problems: Problem[] = [];
  for (const part of ["dimension", "value", "endpoint", "algorithm"] as const) {
    if (rule[part] === sibling[part] || (part !== "algorithm" && renderRuleKey(rule) === renderRuleKey(sibling)))
      continue;
    const message = `is ${JSON.stringify(rule[part])}, and that of ${renderRuleId(sibling)}, of the same policy, is ${JSON.stringify(sibling[part])}; change both at once, in the policy (${policyPath(rule.policy)})`;
    problems.push({ path: [vocabulary.fields[part]], message });
  }
  if (problems.length > 0) throw invalidRequest(problems);
}

/** The new document is based on the one that was read, which must be the version that the caller saw, if given. */
function requireExpected(stored: StoredPolicy, { expected }: ExpectingOptions): void {
  if (expected !== undefined && expected !== stored.version)
    throw new VersionConflict(`the policy ${stored.id}`, expected, stored.version);
}

interface SiblingRules {
  readonly stored: StoredPolicy;
  readonly rules: readonly Rule[];
}

/** Undefined if there is no such policy. Throws if it is not a rule. */
async function findSiblings(policies: RulePolicies, actor: Actor, policy: string): Promise<SiblingRules | undefined> {
  const stored = await policies.get(actor, policy).catch((error: unknown) => {
    if (error instanceof SluiceError && error.code === "resource_not_found") return undefined;
    throw error;
  });
  if (stored === undefined) return undefined;
  const read = readRules(policy, stored.document);
  if (read.kind === "no_rule") throw notARule(stored.id, read.why);
  return { stored, rules: read.rules };
}

/** The policy that has rules for the same dimension, value and endpoint. */
async function findSiblingsByKey(
  policies: RulePolicies,
  actor: Actor,
  written: WrittenRule,
): Promise<SiblingRules | undefined> {
  const key = renderRuleKey(written);
  const yieldIfDue = createYield();
  for (let after: string | undefined; ; ) {
    const { items, next } = await policies.list(actor, { after, limit: 1_000 });
    for (const stored of items) {
      await yieldIfDue();
      const read = readRules(stored.id, stored.document);
      if (read.kind === "rules" && renderRuleKey(read.rules[0]) === key) return { stored, rules: read.rules };
    }
    if (next === undefined) return undefined;
    after = next;
  }
}

function renderKeyFields({ fields }: RuleVocabulary): string {
  return `${fields.dimension}, ${fields.value} and ${fields.endpoint}`;
}

export function policyPath(policy: string): string {
  return `/api/v1/policies/${encodeURIComponent(policy)}`;
}

function notARule(policy: string, why: string): SluiceError {
  const message = `the policy ${policy} ${why}, which a rule cannot express; read and change it at ${policyPath(policy)}`;
  return new SluiceError("invalid_request", message);
}
