import type { CheckAndIncrementRequest, CheckAndIncrementResponse } from "@sluice/protocol";
import type { Decision } from "sluice";
import { whenDecided } from "../../../service/decide.ts";
import type { CallInfo, GrpcContext } from "../method.ts";
import { quotaOf } from "../quota-message.ts";
import { readPolicyKey } from "../read-policy-key.ts";
import { ceilOf, floorOf, int32Of } from "../whole-numbers.ts";

export function checkAndIncrement(
  request: CheckAndIncrementRequest,
  context: GrpcContext,
  { deadlineMs }: CallInfo,
): CheckAndIncrementResponse | Promise<CheckAndIncrementResponse> {
  const { cost, requestId } = request;
  const decided = context.decide.one({
    ...readPolicyKey(request),
    cost: cost === 0 ? undefined : cost,
    id: requestId === "" ? undefined : requestId,
    deadlineMs,
  });
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
  };
}
