import { disabledPolicies, disablingChange } from "@sluice/protocol/admin";
import type { HttpResponse } from "../../../data-plane/transports/http/exchange.ts";
import { changeView } from "../answer.ts";
import type { DisableBody } from "../disable-shape.ts";
import type { AdminContext, AdminRequest } from "../route.ts";

export async function listDisabled({ actor }: AdminRequest, { control }: AdminContext): Promise<HttpResponse> {
  return { status: 200, body: disabledPolicies.render({ items: await control.disabling.list(actor) }) };
}

export async function disablePolicy(
  { actor, params, body, change }: AdminRequest<DisableBody>,
  { control }: AdminContext,
): Promise<HttpResponse> {
  const { mode, for_ms: forMs, until_ms: untilMs } = body;
  const { dryRun, why } = change;
  const done = await control.disabling.disable(actor, params.id!, { dryRun, why, mode, forMs, untilMs });
  return { status: 200, body: disablingChange.render({ ...changeView(done), disabled: done.value }) };
}

export async function enablePolicy(
  { actor, params, change }: AdminRequest,
  { control }: AdminContext,
): Promise<HttpResponse> {
  const done = await control.disabling.enable(actor, params.id!, change);
  return { status: 200, body: disablingChange.render({ ...changeView(done), disabled: done.value }) };
}
