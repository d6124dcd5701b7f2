import { answerVersion, changeBody } from "../../../control-plane/admin-api/answer.ts";
import type { AdminContext, AdminRequest } from "../../../control-plane/admin-api/route.ts";
import type { HttpResponse } from "../../../data-plane/transports/http/exchange.ts";
import { findCreated, ruleBody } from "../rule-body.ts";
import { replaceRule } from "../rule-control.ts";
import type { RuleVocabulary, WrittenRule } from "../rule-vocabulary.ts";

export function putRule(vocabulary: RuleVocabulary) {
  return async (request: AdminRequest<WrittenRule>, { control }: AdminContext): Promise<HttpResponse> => {
    const { actor, body, change, params } = request;
    const changed = await replaceRule(control.policies, actor, params.rule_id!, body, vocabulary, change);
    const { rule, stored } = changed.value;
    const [created] = await findCreated(control.policies, actor, [stored]);
    return answerVersion({ ...ruleBody(rule, stored, created, vocabulary), ...changeBody(changed) }, stored.version);
  };
}
