import { changeBody, etagOf } from "../../../control-plane/admin-api/answer.ts";
import type { AdminContext, AdminRequest } from "../../../control-plane/admin-api/route.ts";
import type { HttpResponse } from "../../../data-plane/transports/http/exchange.ts";
import { ruleIdOf } from "../rule.ts";
import { findCreated, ruleBody } from "../rule-body.ts";
import { createRule } from "../rule-control.ts";
import type { RuleWords, WrittenRule } from "../rule-words.ts";

export function createRuleHandler(words: RuleWords) {
  return async (request: AdminRequest<WrittenRule>, { control }: AdminContext): Promise<HttpResponse> => {
    const { actor, body, change } = request;
    const changed = await createRule(control.policies, actor, body, words, change);
    const { rule, stored } = changed.value;
    const [created] = await findCreated(control.policies, actor, [stored]);
    return {
      status: 201,
      headers: { etag: etagOf(stored.version), location: `${words.path}/${encodeURIComponent(ruleIdOf(rule))}` },
      body: { ...ruleBody(rule, stored, created, words), ...changeBody(changed) },
    };
  };
}
