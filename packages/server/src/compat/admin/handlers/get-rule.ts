import { answerVersion } from "../../../control-plane/admin-api/answer.ts";
import type { AdminContext, AdminRequest } from "../../../control-plane/admin-api/route.ts";
import { notFound } from "../../../control-plane/control-errors.ts";
import type { HttpResponse } from "../../../data-plane/transports/http/exchange.ts";
import { readRules } from "../read-rules.ts";
import { splitRuleId } from "../rule.ts";
import { findCreated, noRuleBody, ruleBody } from "../rule-body.ts";
import { findTierRule } from "../rule-control.ts";
import type { RuleVocabulary } from "../rule-vocabulary.ts";

/** One rule, or the reason why the policy is not one. */
export function getRule(vocabulary: RuleVocabulary) {
  return async ({ actor, params }: AdminRequest, { control }: AdminContext): Promise<HttpResponse> => {
    const id = params.rule_id!;
    const { policy, tier } = splitRuleId(id);
    const stored = await control.policies.get(actor, policy);
    const [created] = await findCreated(control.policies, actor, [stored]);
    const read = readRules(policy, stored.document);
    if (read.kind === "no_rule" && tier === undefined)
      return answerVersion(noRuleBody(stored, read.why, created, vocabulary), stored.version);
    const rule = read.kind === "rules" ? findTierRule(read.rules, tier) : undefined;
    if (rule === undefined) throw notFound(`the rule ${id}`);
    return answerVersion(ruleBody(rule, stored, created, vocabulary), stored.version);
  };
}
