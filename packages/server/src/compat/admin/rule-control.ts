import { randomUUID } from "node:crypto";
import { type Problem, SluiceError } from "sluice";
import { renameProblems } from "../../control-plane/admin-api/rename-problems.ts";
import { invalidField, invalidRequest, notFound } from "../../control-plane/control-errors.ts";
import type { Changed, ControlPlane, ExpectingOptions, StoredPolicy } from "../../control-plane/control-plane.ts";
import { defaultPolicyId, readDocument } from "../../control-plane/documents/read-documents.ts";
import type { Actor } from "../../data-plane/access/actor.ts";
import { VersionConflict } from "../../data-plane/service/version-conflict.ts";
import { createTurns } from "../../turns.ts";
import { readRules } from "./read-rules.ts";
import { type Rule, ruleIdOf, ruleKeyOf, splitRuleId } from "./rule.ts";
import { type RuleWords, renameProblem, type WrittenRule } from "./rule-words.ts";
import { removeOwn, removeTier, writeRule } from "./write-rule.ts";

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
  const rule = ruleCalled(read.rules, tier);
  if (rule === undefined) throw notFound(`the rule ${id}`);
  return { rule, stored, rules: read.rules };
}

/** The rule of a tier. The only one of a policy is also called by the policy's id, as it may have been made. */
export function ruleCalled(rules: readonly Rule[], tier: string | undefined): Rule | undefined {
  return rules.find((one) => one.tier === tier) ?? (tier === undefined && rules.length === 1 ? rules[0] : undefined);
}

/** Makes a rule: a policy for it, or a part of the policy that has the rules of other tiers. */
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
    return createOwn(policies, actor, written, words, change);
  }
  if (tier === undefined || (given?.tier !== undefined && given.tier !== tier))
    throw invalidField([words.fields.id], `names the tier ${given?.tier}, and ${words.fields.tier} another one`);
  const beside =
    given?.tier === undefined
      ? await findBeside(policies, actor, written)
      : await besideOf(policies, actor, given.policy);
  if (beside === undefined) {
    const rule = ruleOf(written, given?.policy ?? randomUUID(), tier, undefined);
    return put(policies, actor, undefined, rule, words, { ...change, expected: 0 });
  }
  const id = ruleIdOf({ policy: beside.stored.id, tier });
  if (given !== undefined && written.ruleId !== id)
    throw invalidField([words.fields.id], `must be ${id}, or be left out: the rule stands beside ${beside.stored.id}`);
  if (beside.rules.some((rule) => rule.tier === tier))
    throw new SluiceError("already_exists", `the rule ${id} is for the same ${sameWords(words)}; change that one`);
  const rule = ruleOf(written, beside.stored.id, tier, beside.rules[0]);
  refuseShared(rule, beside.rules[0]!, words);
  return put(policies, actor, beside.stored, rule, words, { ...change, expected: beside.stored.version });
}

/** A rule for subjects without a tier: a policy for it, or a part of the one that has rules of tiers alone. */
async function createOwn(
  policies: Policies,
  actor: Actor,
  written: WrittenRule,
  words: RuleWords,
  change: ExpectingOptions,
): Promise<ChangedRule> {
  try {
    const rule = ruleOf(written, written.ruleId ?? randomUUID(), undefined, undefined);
    return await put(policies, actor, undefined, rule, words, { ...change, expected: 0 });
  } catch (error) {
    const isThere =
      error instanceof SluiceError && (error.code === "already_exists" || error.code === "version_conflict");
    const beside = isThere ? await findBeside(policies, actor, written) : undefined;
    if (beside === undefined || beside.rules[0]!.tier === undefined) throw error;
    const { id, version } = beside.stored;
    if (written.ruleId !== undefined && written.ruleId !== id)
      throw invalidField(
        [words.fields.id],
        `must be ${id}, or be left out: the rule stands beside ${ruleIdOf(beside.rules[0]!)}`,
      );
    const rule = ruleOf(written, id, undefined, beside.rules[0]);
    refuseShared(rule, beside.rules[0]!, words);
    return put(policies, actor, beside.stored, rule, words, { ...change, expected: version });
  }
}

/** In place of the version that the caller saw, or of whatever is there if it says none: rules are written without versions, too. */
export function replaceRule(
  policies: Policies,
  actor: Actor,
  id: string,
  written: WrittenRule,
  words: RuleWords,
  change: ExpectingOptions,
): Promise<ChangedRule> {
  return againIfUnseen(change, () => replaceSeen(policies, actor, id, written, words, change));
}

async function replaceSeen(
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
  return put(policies, actor, stored, rule, words, { ...change, expected: stored.version });
}

/** Deletes a rule, and with the last one its policy. A version is expected as by `replaceRule`. */
export function deleteRule(
  policies: Policies,
  actor: Actor,
  id: string,
  change: ExpectingOptions,
): Promise<Omit<Changed<unknown>, "value">> {
  return againIfUnseen(change, () => deleteSeen(policies, actor, id, change));
}

/** How often a change that names no version is tried, when others change the same policy. */
const maxTries = 5;

/** What is written is made of what was read, so a change in between is read again rather than lost. */
async function againIfUnseen<T>({ expected }: ExpectingOptions, go: () => Promise<T>): Promise<T> {
  for (let tries = 1; ; tries++) {
    try {
      return await go();
    } catch (error) {
      if (expected !== undefined || tries === maxTries || !(error instanceof VersionConflict)) throw error;
    }
  }
}

async function deleteSeen(
  policies: Policies,
  actor: Actor,
  id: string,
  change: ExpectingOptions,
): Promise<Omit<Changed<unknown>, "value">> {
  const { rule, stored, rules } = await findRule(policies, actor, id);
  demandSeen(stored, change);
  const seen = { ...change, expected: stored.version };
  if (rules.length === 1) return policies.delete(actor, stored.id, seen);
  const { document } = stored;
  const left = rule.tier === undefined ? removeOwn(document, stored.id) : removeTier(document, stored.id, rule.tier);
  return policies.put(actor, stored.id, left, { ...seen, ruleKey: ruleKeyOf(rule) });
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

/** What is written is made of what was read: it must be what the caller saw, if it says. */
function demandSeen(stored: StoredPolicy, { expected }: ExpectingOptions): void {
  if (expected !== undefined && expected !== stored.version)
    throw new VersionConflict(`the policy ${stored.id}`, expected, stored.version);
}

interface Beside {
  readonly stored: StoredPolicy;
  readonly rules: readonly Rule[];
}

/** Undefined where there is no such policy. Throws where it is no rule. */
async function besideOf(policies: Policies, actor: Actor, policy: string): Promise<Beside | undefined> {
  const stored = await policies.get(actor, policy).catch((error: unknown) => {
    if (error instanceof SluiceError && error.code === "resource_not_found") return undefined;
    throw error;
  });
  if (stored === undefined) return undefined;
  const read = readRules(policy, stored.document);
  if (read.kind === "no_rule") throw noRule(stored.id, read.why);
  return { stored, rules: read.rules };
}

/** The policy that has rules for the same dimension, value and endpoint. */
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
