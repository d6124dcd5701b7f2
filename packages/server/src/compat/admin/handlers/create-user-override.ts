import type { Problem } from "sluice";
import { renderDuration } from "sluice/internal";
import { renderEtag } from "../../../control-plane/admin-api/answer.ts";
import { renameProblems } from "../../../control-plane/admin-api/rename-problems.ts";
import type { AdminContext, AdminRequest } from "../../../control-plane/admin-api/route.ts";
import { invalidField } from "../../../control-plane/control-errors.ts";
import type { HttpResponse } from "../../../data-plane/transports/http/exchange.ts";
import { splitRuleId } from "../rule.ts";
import { userChangeBody } from "../user-body.ts";
import type { UserOverrideBody } from "../user-shapes.ts";

/**
 * Gives a user an override, which ends automatically. Without a version it replaces any earlier one, which the answer
 * shows.
 */
export async function createUserOverride(
  { actor, params, body, change }: AdminRequest<UserOverrideBody>,
  { control }: AdminContext,
): Promise<HttpResponse> {
  const { policy } = splitRuleId(body.rule_id);
  const { limit, window_seconds: seconds, burst } = body;
  const window = { limit, per: renderDuration(seconds * 1_000), ...(burst !== undefined && { burst }) };
  const override = { policy, windows: [window], untilMs: findEnd(body) };
  const options = { ...change, expected: change.expected ?? ("any" as const) };
  const wanted = control.subjects.setLimit(actor, "user", params.user_id!, override, options);
  const changed = await renameProblems(wanted, (path) => [findField(path, body)]);
  return {
    status: 201,
    headers: { etag: renderEtag(changed.value.version) },
    body: userChangeBody(changed),
  };
}

/** Names a problem with the limit by the fields of the body. */
function findField(path: Problem["path"], { expires_at: atMs }: UserOverrideBody): string {
  const part = String(path.at(-1));
  const names: Readonly<Record<string, string>> = {
    policy: "rule_id",
    limit: "limit",
    per: "window_seconds",
    burst: "burst",
    until_ms: atMs === undefined ? "duration_seconds" : "expires_at",
    subject: "user_id",
    value: "user_id",
    reason: "reason",
  };
  return Object.hasOwn(names, part) ? names[part]! : "rule_id";
}

function findEnd({ expires_at: atMs, duration_seconds: seconds }: UserOverrideBody): number {
  if (atMs !== undefined) return atMs;
  if (seconds !== undefined) return Date.now() + seconds * 1_000;
  const message =
    "is missing, and so is duration_seconds: an override ends. For a limit without an end, see /api/v1/subjects";
  throw invalidField(["expires_at"], message);
}
