import { changeBody, renderEtag } from "../../../control-plane/admin-api/answer.ts";
import type { AdminContext, AdminRequest } from "../../../control-plane/admin-api/route.ts";
import type { HttpResponse } from "../../../data-plane/transports/http/exchange.ts";
import { renderRuleId } from "../rule.ts";
import { findCreated, ruleBody } from "../rule-body.ts";
import { createRule } from "../rule-control.ts";
import type { RuleVocabulary, WrittenRule } from "../rule-vocabulary.ts";

export function createRuleHandler(vocabulary: RuleVocabulary) {
  return async (request: AdminRequest<WrittenRule>, { control }: AdminContext): Promise<HttpResponse> => {
    const { actor, body, change } = request;
    const changed = await createRule(control.policies, actor, body, vocabulary, change);
    const { rule, stored } = changed.value;
    const [created] = await findCreated(control.policies, actor, [stored]);
    return {
      status: 201,
      headers: {
        etag: renderEtag(stored.version),
        location: `${vocabulary.path}/${encodeURIComponent(renderRuleId(rule))}`,
      },
      body: { ...ruleBody(rule, stored, created, vocabulary), ...changeBody(changed) },
    };
  };
}
