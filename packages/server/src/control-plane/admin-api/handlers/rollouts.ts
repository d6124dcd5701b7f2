import { rollout, rolloutChange, rolloutMinutes } from "@sluice/protocol/admin";
import type { HttpResponse } from "../../../data-plane/transports/http/exchange.ts";
import type { RolloutControl } from "../../rollout-control.ts";
import { answerPage, changeView } from "../answer.ts";
import type { AdminContext, AdminRequest } from "../route.ts";

interface ListQuery {
  readonly policy?: string;
  readonly state?: NonNullable<Parameters<RolloutControl["list"]>[1]>["states"];
  readonly limit?: number;
  readonly after?: string;
}

export async function listRollouts(
  { actor, query: { state, ...query }, url }: AdminRequest<undefined, ListQuery>,
  { control }: AdminContext,
): Promise<HttpResponse> {
  return answerPage(await control.rollouts.list(actor, { ...query, states: state }), rollout.render, url);
}

export async function getRollout({ actor, params }: AdminRequest, { control }: AdminContext): Promise<HttpResponse> {
  return { status: 200, body: rollout.render(await control.rollouts.get(actor, params.id!)) };
}

export async function listRolloutMinutes(
  { actor, params }: AdminRequest,
  { control }: AdminContext,
): Promise<HttpResponse> {
  return { status: 200, body: rolloutMinutes.render({ items: await control.rollouts.minutes(actor, params.id!) }) };
}

/** The handler of one action on a rollout. */
export function steerRollout(verb: "advance" | "pause" | "resume" | "finish" | "rollBack") {
  return async (
    {
      actor,
      params,
      body,
      change,
    }: AdminRequest<{ readonly why?: string; readonly expected_step?: number } | undefined>,
    { control }: AdminContext,
  ): Promise<HttpResponse> => {
    const { dryRun, why } = change;
    const changed = await control.rollouts[verb](actor, params.id!, { dryRun, why, expectedStep: body?.expected_step });
    return { status: 200, body: rolloutChange.render({ ...changeView(changed), rollout: changed.value }) };
  };
}
