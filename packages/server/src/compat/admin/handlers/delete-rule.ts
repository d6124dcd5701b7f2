import { changeBody } from "../../../control-plane/admin-api/answer.ts";
import type { AdminContext, AdminRequest } from "../../../control-plane/admin-api/route.ts";
import type { HttpResponse } from "../../../data-plane/transports/http/exchange.ts";
import { deleteRule } from "../rule-control.ts";

export async function deleteRuleHandler(
  { actor, change, params }: AdminRequest,
  { control }: AdminContext,
): Promise<HttpResponse> {
  const changed = await deleteRule(control.policies, actor, params.rule_id!, change);
  return { status: 200, body: changeBody(changed) };
}
