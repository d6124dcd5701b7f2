import type { GetUsageRequest, GetUsageResponse } from "@sluice/protocol";
import { SluiceError, StoreUnavailable } from "sluice";
import { whenDecided } from "../../../service/decide.ts";
import type { CallInfo, GrpcContext } from "../method.ts";
import { quotaOf } from "../quota-message.ts";
import { readPolicyKey } from "../read-policy-key.ts";

export function getUsage(
  request: GetUsageRequest,
  context: GrpcContext,
  { deadlineMs }: CallInfo,
): GetUsageResponse | Promise<GetUsageResponse> {
  const decided = context.decide.one({
    ...readPolicyKey(request),
    cost: 0,
    preview: true,
    details: true,
    deadlineMs,
  });
  return whenDecided(decided, ({ limits = [], resetAtMs, resetAfterMs, degraded }) => {
    // No limits would be a wrong answer.
    if (degraded === "kill_switch")
      throw new SluiceError("not_ready", "the kill switch is on, and nothing is counted; ask again when it is off");
    if (degraded !== undefined && limits.length === 0) throw new StoreUnavailable(degraded);
    // By the clock of the counters, of which the limit that speaks tells the time.
    const nowMs = resetAtMs === undefined || resetAfterMs === undefined ? Date.now() : resetAtMs - resetAfterMs;
    return { quotas: limits.map((limit) => quotaOf(limit, nowMs + limit.resetAfterMs)!) };
  });
}
