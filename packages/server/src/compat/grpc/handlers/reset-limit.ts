import type { ResetLimitRequest, ResetLimitResponse } from "@sluice/protocol";
import type { CallInfo, GrpcContext } from "../../../data-plane/transports/grpc/method.ts";
import { readIdentifier } from "../read-identifier.ts";

export async function resetLimit(
  request: ResetLimitRequest,
  context: GrpcContext,
  { caller, from }: CallInfo,
): Promise<ResetLimitResponse> {
  const counters = await context.reset({ dimensions: readIdentifier(request) }, { caller, from });
  return { countersReset: counters.length };
}
