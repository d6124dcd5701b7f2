import type { GetUsageRequest, GetUsageResponse, Quota, UsageSum } from "@sluice/protocol";
import type { Decision } from "sluice";
import type { ControlPlane } from "../../../control-plane/control-plane.ts";
import type { UsageTotal } from "../../../control-plane/usage-control.ts";
import { whenDecided } from "../../../data-plane/service/create-decide.ts";
import type { CallInfo, GrpcContext, UnaryHandler } from "../../../data-plane/transports/grpc/method.ts";
import { renderQuota, windowQuotas } from "../quota-message.ts";
import { askByPolicyId, readPolicyKey } from "../read-policy-key.ts";
import { refuseUncounted } from "../refuse-uncounted.ts";
import { requireControl } from "../require-control.ts";

/** How every window stands now, and if a period is given, what was decided in it. */
export function getUsage(control: ControlPlane | undefined): UnaryHandler<GetUsageRequest, GetUsageResponse> {
  return (request, context, call) => {
    if (request.fromUnixMs === 0 && request.toUnixMs === 0)
      return whenDecided(readQuotas(request, context, call), (quotas) => ({ quotas, sums: [] }));
    return readBoth(requireControl(control), request, context, call);
  };
}

function readQuotas(
  request: GetUsageRequest,
  context: GrpcContext,
  { deadlineMs }: CallInfo,
): Quota[] | Promise<Quota[]> {
  const check = { ...readPolicyKey(request), cost: 0, preview: true, details: true, record: true, deadlineMs };
  const decided = askByPolicyId(() => context.decide.one(check));
  return whenDecided(decided, renderQuotas);
}

function renderQuotas(decision: Decision): Quota[] {
  refuseUncounted(decision);
  const { limits = [], resetAtMs, resetAfterMs } = decision;
  // By the clock of the counters, which the speaking limit reports.
  const nowMs = resetAtMs === undefined || resetAfterMs === undefined ? Date.now() : resetAtMs - resetAfterMs;
  return limits.flatMap((limit) =>
    limit.record === undefined
      ? [renderQuota(limit, nowMs + limit.resetAfterMs)!]
      : windowQuotas(limit, limit.record.windows, nowMs),
  );
}

async function readBoth(
  control: ControlPlane,
  request: GetUsageRequest,
  context: GrpcContext,
  call: CallInfo,
): Promise<GetUsageResponse> {
  const quotas = await readQuotas(request, context, call);
  const { fromUnixMs: fromMs, toUnixMs, policyId, dimensions } = request;
  const toMs = toUnixMs === 0 ? undefined : toUnixMs;
  // A policy that denies by a list has decisions, and reports no window.
  const policies = new Set([...(policyId === "" ? [] : [policyId]), ...quotas.map((quota) => quota.policyId)]);
  const { caller, from } = call;
  const totals = await control.usage.sum({ caller, from }, { fromMs, toMs, policies: [...policies], dimensions });
  return { quotas, sums: totals.map(renderSum) };
}

function renderSum({ policy, fromMs, toMs, ...total }: UsageTotal): UsageSum {
  return { policyId: policy, fromUnixMs: fromMs, toUnixMs: toMs, ...total };
}
