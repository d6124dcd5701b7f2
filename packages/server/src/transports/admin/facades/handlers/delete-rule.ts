import type { HttpResponse } from "../../../http/exchange.ts";
import { changeBody } from "../../answer.ts";
import type { AdminContext, AdminRequest } from "../../route.ts";
import { deleteRule } from "../rule-control.ts";

export async function deleteRuleHandler(
  { actor, change, params }: AdminRequest,
  { control }: AdminContext,
): Promise<HttpResponse> {
  const changed = await deleteRule(control.policies, actor, params.rule_id!, change);
  return { status: 200, body: changeBody(changed) };
}
