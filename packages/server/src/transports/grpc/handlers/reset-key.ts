import type { ResetKeyRequest, ResetKeyResponse } from "@sluice/protocol";
import type { CallInfo, GrpcContext } from "../method.ts";
import { readPolicyKey } from "../read-policy-key.ts";

export async function resetKey(
  request: ResetKeyRequest,
  context: GrpcContext,
  { caller, from }: CallInfo,
): Promise<ResetKeyResponse> {
  await context.reset(readPolicyKey(request), { caller, from });
  return {};
}
