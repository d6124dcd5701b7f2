import type { CheckAndIncrementRequest, CheckAndIncrementResponse } from "@sluice/protocol";
import type { Decision } from "sluice";
import { whenDecided } from "../../../data-plane/service/create-decide.ts";
import type { CallInfo, GrpcContext } from "../../../data-plane/transports/grpc/method.ts";
import { renderQuota } from "../quota-message.ts";
import { askByPolicyId, readPolicyKey } from "../read-policy-key.ts";
import { ceilOrZero, floorOrZero, int32Of } from "../whole-numbers.ts";

export function checkAndIncrement(
  request: CheckAndIncrementRequest,
  context: GrpcContext,
  { deadlineMs, metadataId }: CallInfo,
): CheckAndIncrementResponse | Promise<CheckAndIncrementResponse> {
  const { cost, requestId } = request;
  const check = {
    ...readPolicyKey(request),
    cost: cost === 0 ? undefined : cost,
    ...(requestId === "" ? metadataId : { id: requestId }),
    deadlineMs,
  };
  const decided = askByPolicyId(() => context.decide.one(check));
  return whenDecided(decided, renderResponse);
}

function renderResponse(decision: Decision): CheckAndIncrementResponse {
  const { policy, version } = decision;
  return {
    allowed: decision.allowed,
    remaining: int32Of(floorOrZero(decision.remaining)),
    resetUnixMs: ceilOrZero(decision.resetAtMs),
    retryAfterMs: decision.allowed ? 0 : int32Of(ceilOrZero(decision.retryAfterMs)),
    policyVersion: policy === undefined ? "" : `${policy}#${version}`,
    matchedQuota: renderQuota(decision, decision.resetAtMs),
    degraded: decision.degraded !== undefined,
    degradedReason: decision.degraded ?? "",
  };
}
