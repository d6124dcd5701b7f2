import { answerVersion } from "../../../control-plane/admin-api/answer.ts";
import type { AdminContext, AdminRequest } from "../../../control-plane/admin-api/route.ts";
import type { HttpResponse } from "../../../data-plane/transports/http/exchange.ts";
import { userBody } from "../user-body.ts";

/** Works for users about which nothing is stored, too. */
export async function getUserLimits({ actor, params }: AdminRequest, { control }: AdminContext): Promise<HttpResponse> {
  const subject = await control.subjects.get(actor, "user", params.user_id!);
  return answerVersion(userBody(subject), subject.version);
}
