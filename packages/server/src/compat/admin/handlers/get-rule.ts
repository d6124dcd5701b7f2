import { answerVersion } from "../../../control-plane/admin-api/answer.ts";
import type { AdminContext, AdminRequest } from "../../../control-plane/admin-api/route.ts";
import { notFound } from "../../../control-plane/control-errors.ts";
import type { HttpResponse } from "../../../data-plane/transports/http/exchange.ts";
import { readRules } from "../read-rules.ts";
import { splitRuleId } from "../rule.ts";
import { findCreated, noRuleBody, ruleBody } from "../rule-body.ts";
import { ruleCalled } from "../rule-control.ts";
import type { RuleWords } from "../rule-words.ts";

/** One rule; of a policy that is none, why it is none. */
export function getRule(words: RuleWords) {
  return async ({ actor, params }: AdminRequest, { control }: AdminContext): Promise<HttpResponse> => {
    const id = params.rule_id!;
    const { policy, tier } = splitRuleId(id);
    const stored = await control.policies.get(actor, policy);
    const [created] = await findCreated(control.policies, actor, [stored]);
    const read = readRules(policy, stored.document);
    if (read.kind === "no_rule" && tier === undefined)
      return answerVersion(noRuleBody(stored, read.why, created, words), stored.version);
    const rule = read.kind === "rules" ? ruleCalled(read.rules, tier) : undefined;
    if (rule === undefined) throw notFound(`the rule ${id}`);
    return answerVersion(ruleBody(rule, stored, created, words), stored.version);
  };
}
