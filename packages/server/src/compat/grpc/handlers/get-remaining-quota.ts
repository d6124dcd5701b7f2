import type { GetRemainingQuotaRequest, GetRemainingQuotaResponse } from "@sluice/protocol";
import { SluiceError, StoreUnavailable } from "sluice";
import { whenDecided } from "../../../data-plane/service/create-decide.ts";
import type { CallInfo, GrpcContext } from "../../../data-plane/transports/grpc/method.ts";
import { readIdentifier } from "../read-identifier.ts";
import { ceilOrZero, floorOrZero, wholeSeconds } from "../whole-numbers.ts";

export function getRemainingQuota(
  request: GetRemainingQuotaRequest,
  context: GrpcContext,
  { deadlineMs }: CallInfo,
): GetRemainingQuotaResponse | Promise<GetRemainingQuotaResponse> {
  const asked = { dimensions: readIdentifier(request), cost: 0, preview: true, deadlineMs };
  return whenDecided(context.decide.one(asked), ({ used, limit, remaining, resetAtMs, degraded }) => {
    // Zeros would mean that nothing limits the request.
    if (degraded === "kill_switch")
      throw new SluiceError("not_ready", "the kill switch is on, and nothing is counted; ask again when it is off");
    if (degraded !== undefined && remaining === undefined) throw new StoreUnavailable(degraded);
    return {
      currentCount: ceilOrZero(used),
      limit: floorOrZero(limit),
      remaining: floorOrZero(remaining),
      resetAt: wholeSeconds(resetAtMs),
    };
  });
}
