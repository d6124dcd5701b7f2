import type { CheckRateLimitRequest, CheckRateLimitResponse } from "@sluice/protocol";
import type { Decision } from "sluice";
import { whenDecided } from "../../../data-plane/service/create-decide.ts";
import type { CallInfo, GrpcContext } from "../../../data-plane/transports/grpc/method.ts";
import { readIdentifier } from "../read-identifier.ts";
import { ceilOrZero, floorOrZero, int32Of, wholeSeconds } from "../whole-numbers.ts";

export function checkRateLimit(
  request: CheckRateLimitRequest,
  context: GrpcContext,
  { deadlineMs, metadataId }: CallInfo,
): CheckRateLimitResponse | Promise<CheckRateLimitResponse> {
  const cost = request.cost === 0 ? undefined : request.cost;
  const decided = context.decide.one({ dimensions: readIdentifier(request), cost, deadlineMs, ...metadataId });
  return whenDecided(decided, renderResponse);
}

function renderResponse(decision: Decision): CheckRateLimitResponse {
  return {
    allowed: decision.allowed,
    currentCount: ceilOrZero(decision.used),
    limit: floorOrZero(decision.limit),
    remaining: floorOrZero(decision.remaining),
    resetAt: wholeSeconds(decision.resetAtMs),
    retryAfter: decision.allowed ? 0 : int32Of(wholeSeconds(decision.retryAfterMs)),
    degraded: decision.degraded !== undefined,
    degradedReason: decision.degraded ?? "",
  };
}
