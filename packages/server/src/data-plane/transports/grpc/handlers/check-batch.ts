import type { CheckBatchRequest } from "@sluice/protocol";
import { whenDecided } from "../../../service/create-decide.ts";
import type { BatchAnswer } from "../batch-codec.ts";
import { checkResults } from "../check-results.ts";
import type { CallInfo, GrpcContext } from "../method.ts";

export function checkBatch(
  request: CheckBatchRequest,
  context: GrpcContext,
  call: CallInfo,
): BatchAnswer | Promise<BatchAnswer> {
  const { sequence } = request;
  return whenDecided(checkResults(request, context, call), (results) => ({ sequence, results }));
}
