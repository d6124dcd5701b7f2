import type { CheckRateLimitRequest, CheckRateLimitResponse } from "@sluice/protocol";
import type { Decision } from "sluice";
import { whenDecided } from "../../../data-plane/service/decide.ts";
import type { CallInfo, GrpcContext } from "../../../data-plane/transports/grpc/method.ts";
import { readIdentifier } from "../read-identifier.ts";
import { ceilOf, floorOf, int32Of, secondsOf } from "../whole-numbers.ts";

export function checkRateLimit(
  request: CheckRateLimitRequest,
  context: GrpcContext,
  { deadlineMs, metadataId }: CallInfo,
): CheckRateLimitResponse | Promise<CheckRateLimitResponse> {
  const cost = request.cost === 0 ? undefined : request.cost;
  const decided = context.decide.one({ dimensions: readIdentifier(request), cost, deadlineMs, ...metadataId });
  return whenDecided(decided, responseOf);
}

function responseOf(decision: Decision): CheckRateLimitResponse {
  return {
    allowed: decision.allowed,
    currentCount: ceilOf(decision.used),
    limit: floorOf(decision.limit),
    remaining: floorOf(decision.remaining),
    resetAt: secondsOf(decision.resetAtMs),
    retryAfter: decision.allowed ? 0 : int32Of(secondsOf(decision.retryAfterMs)),
    degraded: decision.degraded !== undefined,
    degradedReason: decision.degraded ?? "",
  };
}
