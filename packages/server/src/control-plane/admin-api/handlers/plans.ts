import { plan, planChange, planSummary } from "@sluice/protocol/admin";
import type { HttpResponse } from "../../../data-plane/transports/http/exchange.ts";
import type { Changed } from "../../change.ts";
import type { ChangedPlan } from "../../plan-control.ts";
import { answerPage, answerVersion, changeView, renderEtag } from "../answer.ts";
import type { PlanBody } from "../plan-shapes.ts";
import type { AdminContext, AdminRequest } from "../route.ts";

export async function listPlans(
  { actor, query, url }: AdminRequest<undefined, { readonly limit?: number; readonly after?: string }>,
  { control }: AdminContext,
): Promise<HttpResponse> {
  return answerPage(await control.plans.list(actor, query), planSummary.render, url);
}

export async function getPlan({ actor, params }: AdminRequest, { control }: AdminContext): Promise<HttpResponse> {
  const found = await control.plans.get(actor, params.name!);
  return answerVersion(plan.render(found), found.version);
}

export async function putPlan(
  { actor, params, body, change }: AdminRequest<PlanBody>,
  { control }: AdminContext,
): Promise<HttpResponse> {
  const { limits, rollout } = body;
  return answerPlan(await control.plans.put(actor, params.name!, limits, { ...change, rollout }));
}

export async function deletePlan(
  { actor, params, change }: AdminRequest,
  { control }: AdminContext,
): Promise<HttpResponse> {
  return answerPlan(await control.plans.delete(actor, params.name!, change));
}

function answerPlan(changed: Changed<ChangedPlan>): HttpResponse {
  return {
    status: 200,
    headers: { etag: renderEtag(changed.value.plan.version) },
    body: planChange.render({ ...changeView(changed), ...changed.value }),
  };
}
