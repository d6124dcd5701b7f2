import { randomUUID } from "node:crypto";
import { type Problem, SluiceError } from "sluice";
import { invalidField, invalidRequest, notFound } from "../../../control/control-errors.ts";
import type { Actor, Changed, ControlPlane, ExpectingOptions, StoredPolicy } from "../../../control/control-plane.ts";
import { defaultPolicyId, readDocument } from "../../../control/read-documents.ts";
import { VersionConflict } from "../../../control/version-conflict.ts";
import { createTurns } from "../../../turns.ts";
import { renameProblems } from "../rename-problems.ts";
import { readRules } from "./read-rules.ts";
import { type Rule, ruleIdOf, ruleKeyOf, splitRuleId } from "./rule.ts";
import { type RuleWords, renameProblem, type WrittenRule } from "./rule-words.ts";
import { removeTier, writeRule } from "./write-rule.ts";

type Policies = ControlPlane["policies"];

/** A rule, and the policy that it is of. */
export interface FoundRule {
  readonly rule: Rule;
  readonly stored: StoredPolicy;
}

export interface ChangedRule extends Omit<Changed<unknown>, "value"> {
  readonly value: FoundRule;
}

/** Throws where there is no such rule, or where it belongs to a policy that is none. */
export async function findRule(
  policies: Policies,
  actor: Actor,
  id: string,
): Promise<FoundRule & { rules: readonly Rule[] }> {
  const { policy, tier } = splitRuleId(id);
  const stored = await policies.get(actor, policy);
  const read = readRules(policy, stored.document);
  if (read.kind === "no_rule") throw noRule(stored.id, read.why);
  const rule = read.rules.find((one) => one.tier === tier);
  if (rule === undefined) throw notFound(`the rule ${id}`);
  return { rule, stored, rules: read.rules };
}

/** Makes a rule: a policy for it, or for a tier a part of the policy that has the rule without one. */
export async function createRule(
  policies: Policies,
  actor: Actor,
  written: WrittenRule,
  words: RuleWords,
  change: ExpectingOptions,
): Promise<ChangedRule> {
  const given = written.ruleId === undefined ? undefined : splitRuleId(written.ruleId);
  if (given?.policy === defaultPolicyId)
    throw invalidField([words.fields.id], `must be another: ${defaultPolicyId} is the policy where no other matches`);
  const tier = written.tier === undefined ? given?.tier : written.tier.of;
  if (tier === undefined && given?.tier === undefined) {
    const rule = ruleOf(written, given?.policy ?? randomUUID(), undefined, undefined);
    return put(policies, actor, undefined, rule, words, { ...change, expected: 0 });
  }
  if (tier === undefined || (given?.tier !== undefined && given.tier !== tier))
    throw invalidField([words.fields.id], `names the tier ${given?.tier}, and ${words.fields.tier} another one`);
  const beside =
    given?.tier === undefined
      ? await findBeside(policies, actor, written)
      : await besideOf(policies, actor, given.policy);
  if (beside === undefined) throw invalidField([words.fields.tier], nothingBeside(tier, words));
  const id = ruleIdOf({ policy: beside.stored.id, tier });
  if (given !== undefined && written.ruleId !== id)
    throw invalidField([words.fields.id], `must be ${id}, or be left out: the rule stands beside ${beside.stored.id}`);
  if (beside.rules.some((rule) => rule.tier === tier))
    throw new SluiceError("already_exists", `the rule ${id} is for the same ${sameWords(words)}; change that one`);
  const rule = ruleOf(written, beside.stored.id, tier, beside.rules[0]);
  refuseShared(rule, beside.rules[0]!, words);
  return put(policies, actor, beside.stored, rule, words, { ...change, expected: beside.stored.version });
}

export async function replaceRule(
  policies: Policies,
  actor: Actor,
  id: string,
  written: WrittenRule,
  words: RuleWords,
  change: ExpectingOptions,
): Promise<ChangedRule> {
  const { rule: before, stored, rules } = await findRule(policies, actor, id);
  if (written.ruleId !== undefined && written.ruleId !== id)
    throw invalidField([words.fields.id], `is ${written.ruleId}, and the rule is ${id}; an id stays what it is`);
  if (written.tier !== undefined && written.tier.of !== before.tier)
    throw invalidField([words.fields.tier], "is another one; make a rule for that tier, and delete this one");
  demandSeen(stored, change);
  const others = rules.filter((rule) => rule !== before);
  const rule = ruleOf(written, stored.id, before.tier, others[0]);
  if (others.length > 0) refuseShared(rule, others[0]!, words);
  return put(policies, actor, stored, rule, words, change);
}

/** Deletes a rule, and with the last one its policy. */
export async function deleteRule(
  policies: Policies,
  actor: Actor,
  id: string,
  change: ExpectingOptions,
): Promise<Omit<Changed<unknown>, "value">> {
  const { rule, stored, rules } = await findRule(policies, actor, id);
  demandSeen(stored, change);
  if (rule.tier !== undefined) {
    const document = removeTier(stored.document, stored.id, rule.tier);
    return policies.put(actor, stored.id, document, { ...change, ruleKey: ruleKeyOf(rule) });
  }
  if (rules.length === 1) return policies.delete(actor, stored.id, change);
  const tiers = rules.slice(1).map(ruleIdOf).join(", ");
  throw new SluiceError("invalid_request", `${tiers} stand beside the rule ${id}; delete them first`);
}

async function put(
  policies: Policies,
  actor: Actor,
  before: StoredPolicy | undefined,
  rule: Rule,
  words: RuleWords,
  change: ExpectingOptions,
): Promise<ChangedRule> {
  const document = writeRule(before?.document, rule);
  const { problems } = readDocument(rule.policy, document);
  if (problems.length > 0) throw invalidRequest(problems.map((problem) => renameProblem(words, rule, problem)));
  const changed = await renameProblems(
    policies.put(actor, rule.policy, document, { ...change, ruleKey: ruleKeyOf(rule) }),
    (path) => renameProblem(words, rule, { path, message: "" }).path,
  );
  const warnings = changed.warnings.map((warning) => renameProblem(words, rule, warning));
  const kept = readRules(rule.policy, changed.value.document);
  const found = kept.kind === "rules" ? kept.rules.find(({ tier }) => tier === rule.tier) : undefined;
  return { ...changed, warnings, value: { rule: found ?? rule, stored: changed.value } };
}

function ruleOf(written: WrittenRule, policy: string, tier: string | undefined, beside: Rule | undefined): Rule {
  const { name, dimension, value, endpoint, limit, windowSeconds } = written;
  return {
    policy,
    tier,
    name,
    dimension,
    value,
    endpoint,
    algorithm: written.algorithm ?? beside?.algorithm ?? "token_bucket",
    limit,
    windowSeconds,
    burst: written.burst ?? limit,
  };
}

/** Rules of one policy share what is not of a tier: it cannot be changed for one of them alone. */
function refuseShared(rule: Rule, beside: Rule, words: RuleWords): void {
  const problems: Problem[] = [];
  for (const part of ["dimension", "value", "endpoint", "algorithm"] as const) {
    if (rule[part] === beside[part] || (part !== "algorithm" && ruleKeyOf(rule) === ruleKeyOf(beside))) continue;
    const message = `is ${JSON.stringify(rule[part])}, and that of ${ruleIdOf(beside)}, of the same policy, is ${JSON.stringify(beside[part])}; change both at once, in the policy (${policyPath(rule.policy)})`;
    problems.push({ path: [words.fields[part]], message });
  }
  if (problems.length > 0) throw invalidRequest(problems);
}

/**
 * What is written is made of what was read: it must be what the caller saw. Where they say nothing of it, the control plane tells
 * them to.
 */
function demandSeen(stored: StoredPolicy, { expected }: ExpectingOptions): void {
  if (expected !== undefined && expected !== stored.version)
    throw new VersionConflict(`the policy ${stored.id}`, expected, stored.version);
}

interface Beside {
  readonly stored: StoredPolicy;
  readonly rules: readonly Rule[];
}

async function besideOf(policies: Policies, actor: Actor, policy: string): Promise<Beside> {
  const { stored, rules } = await findRule(policies, actor, policy);
  return { stored, rules };
}

/** The policy that has the rule for whoever has no tier. */
async function findBeside(policies: Policies, actor: Actor, written: WrittenRule): Promise<Beside | undefined> {
  const key = ruleKeyOf(written);
  const turns = createTurns();
  for (let after: string | undefined; ; ) {
    const { items, next } = await policies.list(actor, { after, limit: 1_000 });
    for (const stored of items) {
      await turns.pass();
      const read = readRules(stored.id, stored.document);
      if (read.kind === "rules" && ruleKeyOf(read.rules[0]) === key) return { stored, rules: read.rules };
    }
    if (next === undefined) return undefined;
    after = next;
  }
}

function nothingBeside(tier: string, words: RuleWords): string {
  return `is ${tier}, and there is no rule yet for whoever has no tier, with the same ${sameWords(words)}; make that one first`;
}

function sameWords({ fields }: RuleWords): string {
  return `${fields.dimension}, ${fields.value} and ${fields.endpoint}`;
}

export function policyPath(policy: string): string {
  return `/api/v1/policies/${encodeURIComponent(policy)}`;
}

function noRule(policy: string, why: string): SluiceError {
  const message = `the policy ${policy} ${why}, which no rule can say; look at it and change it at ${policyPath(policy)}`;
  return new SluiceError("invalid_request", message);
}
