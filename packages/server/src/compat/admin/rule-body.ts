import type { Body } from "../../control-plane/admin-api/answer.ts";
import type { ControlPlane, StoredPolicy } from "../../control-plane/control-plane.ts";
import type { Actor } from "../../data-plane/access/actor.ts";
import { policyCreatedAt } from "../grpc/policy-created-at.ts";
import { readRules } from "./read-rules.ts";
import type { Rule } from "./rule.ts";
import { policyPath } from "./rule-control.ts";
import type { RuleWords } from "./rule-words.ts";

/** One rule. It may be sent back. */
export function ruleBody(rule: Rule, stored: StoredPolicy, createdMs: number | undefined, words: RuleWords): Body {
  return { ...words.render(rule), ...historyOf(stored, createdMs) };
}

/** A policy as the rules that it is; as one entry that says why, where it is none. */
export function ruleBodies(stored: StoredPolicy, createdMs: number | undefined, words: RuleWords): readonly Body[] {
  const read = readRules(stored.id, stored.document);
  if (read.kind === "rules") return read.rules.map((rule) => ruleBody(rule, stored, createdMs, words));
  return [noRuleBody(stored, read.why, createdMs, words)];
}

export function noRuleBody(stored: StoredPolicy, why: string, createdMs: number | undefined, words: RuleWords): Body {
  return {
    [words.fields.id]: stored.id,
    expressible: false,
    reason: `the policy ${why}`,
    policy: policyPath(stored.id),
    ...historyOf(stored, createdMs),
  };
}

function historyOf({ version, changedMs, overriddenBy }: StoredPolicy, createdMs: number | undefined): Body {
  return {
    version,
    created_at: createdMs === undefined ? undefined : new Date(createdMs).toISOString(),
    updated_at: new Date(changedMs).toISOString(),
    // Then it is kept, and not in force.
    overridden_by: overriddenBy,
  };
}

/** How many are asked at once. */
const together = 16;

/** When the first version of each policy was made; undefined where it is not known any more. */
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
