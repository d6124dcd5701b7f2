import type { StatusRequest, StatusResponse } from "@sluice/protocol/ratelimiter";
import { maxCost } from "sluice";
import { bucketLevels } from "../bucket-levels.ts";
import { readLimitKey } from "../limit-key.ts";
import type { CallInfo, GrpcContext } from "../method.ts";

export async function getBucketStatus(
  request: StatusRequest,
  context: GrpcContext,
  { deadlineMs }: CallInfo,
): Promise<StatusResponse> {
  const key = readLimitKey(context.limiter.snapshot.policySet, request);
  const [levels, decision] = await Promise.all([
    bucketLevels({ ...key, deadlineMs }, context),
    context.limiter.peek({ ...key, cost: maxCost, deadlineMs }),
  ]);
  // A denial tells what was denied before it, and itself; an allowance would tell of nothing.
  const denyCount = decision.allowed ? 0 : Math.max(0, decision.denyCount - decision.cost);
  return { levels, lastUpdateTimestamp: Date.now(), denyCount };
}
