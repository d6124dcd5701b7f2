import type { Body } from "../../control-plane/admin-api/answer.ts";
import type { ControlPlane } from "../../control-plane/control-plane.ts";
import type { StoredPolicy } from "../../control-plane/policy-control.ts";
import type { Actor } from "../../data-plane/access/actor.ts";
import { policyCreatedAt } from "../grpc/policy-created-at.ts";
import { readRules } from "./read-rules.ts";
import type { Rule } from "./rule.ts";
import { policyPath } from "./rule-control.ts";
import type { RuleVocabulary } from "./rule-vocabulary.ts";

/** One rule. It may be sent back. */
export function ruleBody(
  rule: Rule,
  stored: StoredPolicy,
  createdMs: number | undefined,
  vocabulary: RuleVocabulary,
): Body {
  return { ...vocabulary.render(rule), ...renderHistory(stored, createdMs) };
}

/** A policy as its rules, or as one entry that says why it is not one. */
export function ruleBodies(
  stored: StoredPolicy,
  createdMs: number | undefined,
  vocabulary: RuleVocabulary,
): readonly Body[] {
  const read = readRules(stored.id, stored.document);
  if (read.kind === "rules") return read.rules.map((rule) => ruleBody(rule, stored, createdMs, vocabulary));
  return [noRuleBody(stored, read.why, createdMs, vocabulary)];
}

export function noRuleBody(
  stored: StoredPolicy,
  why: string,
  createdMs: number | undefined,
  vocabulary: RuleVocabulary,
): Body {
  return {
    [vocabulary.fields.id]: stored.id,
    expressible: false,
    reason: `the policy ${why}`,
    policy: policyPath(stored.id),
    ...renderHistory(stored, createdMs),
  };
}

function renderHistory({ version, changedMs, overriddenBy }: StoredPolicy, createdMs: number | undefined): Body {
  return {
    version,
    created_at: createdMs === undefined ? undefined : new Date(createdMs).toISOString(),
    updated_at: new Date(changedMs).toISOString(),
    // It is then stored, and not in force.
    overridden_by: overriddenBy,
  };
}

/** How many are read at once. */
const together = 16;

/** When the first version of each policy was made; undefined if no longer known. */
export async function findCreated(
  policies: ControlPlane["policies"],
  actor: Actor,
  all: readonly StoredPolicy[],
): Promise<readonly (number | undefined)[]> {
  const created: (number | undefined)[] = [];
  for (let at = 0; at < all.length; at += together)
    created.push(
      ...(await Promise.all(all.slice(at, at + together).map((one) => policyCreatedAt(policies, actor, one)))),
    );
  return created;
}
