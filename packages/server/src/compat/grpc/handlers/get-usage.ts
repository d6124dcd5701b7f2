import type { GetUsageRequest, GetUsageResponse } from "@sluice/protocol";
import { whenDecided } from "../../../data-plane/service/decide.ts";
import type { CallInfo, GrpcContext } from "../../../data-plane/transports/grpc/method.ts";
import { renderQuota, windowQuotas } from "../quota-message.ts";
import { askByPolicyId, readPolicyKey } from "../read-policy-key.ts";
import { refuseUncounted } from "../refuse-uncounted.ts";

export function getUsage(
  request: GetUsageRequest,
  context: GrpcContext,
  { deadlineMs }: CallInfo,
): GetUsageResponse | Promise<GetUsageResponse> {
  const check = { ...readPolicyKey(request), cost: 0, preview: true, details: true, record: true, deadlineMs };
  const decided = askByPolicyId(() => context.decide.one(check));
  return whenDecided(decided, (decision) => {
    refuseUncounted(decision);
    const { limits = [], resetAtMs, resetAfterMs } = decision;
    // By the clock of the counters, which the speaking limit reports.
    const nowMs = resetAtMs === undefined || resetAfterMs === undefined ? Date.now() : resetAtMs - resetAfterMs;
    return {
      quotas: limits.flatMap((limit) =>
        limit.record === undefined
          ? [renderQuota(limit, nowMs + limit.resetAfterMs)!]
          : windowQuotas(limit, limit.record.windows, nowMs),
      ),
    };
  });
}
