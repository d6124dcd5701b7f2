import { renderDuration } from "sluice";
import { invalidField } from "../../../../control/control-errors.ts";
import type { HttpResponse } from "../../../http/exchange.ts";
import { changeBody, etagOf } from "../../answer.ts";
import type { AdminContext, AdminRequest } from "../../route.ts";
import { splitRuleId } from "../rule.ts";
import { userBody } from "../user-body.ts";
import type { UserOverrideBody } from "../user-shapes.ts";

/** Another limit for a user, which ends by itself. */
export async function createUserOverride(
  { actor, params, body, change }: AdminRequest<UserOverrideBody>,
  { control }: AdminContext,
): Promise<HttpResponse> {
  const { policy } = splitRuleId(body.rule_id);
  const { limit, window_seconds: seconds, burst } = body;
  const window = { limit, per: renderDuration(seconds * 1_000), ...(burst !== undefined && { burst }) };
  const override = { policy, windows: [window], untilMs: endOf(body) };
  const changed = await control.subjects.setLimit(actor, "user", params.user_id!, override, change);
  return {
    status: 201,
    headers: { etag: etagOf(changed.value.version) },
    body: { ...userBody(changed.value), ...changeBody(changed) },
  };
}

function endOf({ expires_at: atMs, duration_seconds: seconds }: UserOverrideBody): number {
  if (atMs !== undefined) return atMs;
  if (seconds !== undefined) return Date.now() + seconds * 1_000;
  const message = "is missing, and duration_seconds too: an override ends. For a limit for good, see /api/v1/subjects";
  throw invalidField(["expires_at"], message);
}
