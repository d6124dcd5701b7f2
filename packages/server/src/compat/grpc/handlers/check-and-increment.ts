import type { CheckAndIncrementRequest, CheckAndIncrementResponse } from "@sluice/protocol";
import type { Decision } from "sluice";
import { whenDecided } from "../../../data-plane/service/decide.ts";
import type { CallInfo, GrpcContext } from "../../../data-plane/transports/grpc/method.ts";
import { quotaOf } from "../quota-message.ts";
import { askByPolicyId, readPolicyKey } from "../read-policy-key.ts";
import { ceilOf, floorOf, int32Of } from "../whole-numbers.ts";

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
  return whenDecided(decided, responseOf);
}

function responseOf(decision: Decision): CheckAndIncrementResponse {
  const { policy, version } = decision;
  return {
    allowed: decision.allowed,
    remaining: int32Of(floorOf(decision.remaining)),
    resetUnixMs: ceilOf(decision.resetAtMs),
    retryAfterMs: decision.allowed ? 0 : int32Of(ceilOf(decision.retryAfterMs)),
    policyVersion: policy === undefined ? "" : `${policy}#${version}`,
    matchedQuota: quotaOf(decision, decision.resetAtMs),
    degraded: decision.degraded !== undefined,
    degradedReason: decision.degraded ?? "",
  };
}
