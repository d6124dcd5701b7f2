import type { HttpResponse } from "../../../http/exchange.ts";
import { answerVersion, changeBody } from "../../answer.ts";
import type { AdminContext, AdminRequest } from "../../route.ts";
import { userBody } from "../user-body.ts";
import type { UserTierBody } from "../user-shapes.ts";

export async function putUserTier(
  { actor, params, body, change }: AdminRequest<UserTierBody>,
  { control }: AdminContext,
): Promise<HttpResponse> {
  const changed = await control.subjects.setTier(actor, "user", params.user_id!, body.tier, change);
  return answerVersion({ ...userBody(changed.value), ...changeBody(changed) }, changed.value.version);
}
