import type { ResetKeyRequest, ResetKeyResponse } from "@sluice/protocol";
import type { CallInfo, GrpcContext } from "../../../data-plane/transports/grpc/method.ts";
import { askByPolicyId, readPolicyKey } from "../read-policy-key.ts";

export async function resetKey(
  request: ResetKeyRequest,
  context: GrpcContext,
  { caller, from }: CallInfo,
): Promise<ResetKeyResponse> {
  const counters = await askByPolicyId(() => context.reset(readPolicyKey(request), { caller, from }));
  return { countersReset: counters.length };
}
