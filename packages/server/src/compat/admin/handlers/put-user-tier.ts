import { answerVersion } from "../../../control-plane/admin-api/answer.ts";
import type { AdminContext, AdminRequest } from "../../../control-plane/admin-api/route.ts";
import type { HttpResponse } from "../../../data-plane/transports/http/exchange.ts";
import { userChangeBody } from "../user-body.ts";
import type { UserTierBody } from "../user-shapes.ts";

/** Without a version, which this vocabulary lacks, it replaces any tier; the answer shows the old one. */
export async function putUserTier(
  { actor, params, body, change }: AdminRequest<UserTierBody>,
  { control }: AdminContext,
): Promise<HttpResponse> {
  const options = { ...change, expected: change.expected ?? ("any" as const) };
  const changed = await control.subjects.setTier(actor, "user", params.user_id!, body.tier, options);
  return answerVersion(userChangeBody(changed), changed.value.version);
}
