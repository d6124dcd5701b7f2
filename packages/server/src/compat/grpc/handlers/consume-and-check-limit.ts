import type { CheckRequest as CheckMessage, CheckResponse } from "@sluice/protocol/ratelimiter";
import type { Decision } from "sluice";
import type { CallInfo, GrpcContext } from "../../../data-plane/transports/grpc/method.ts";
import { bucketLevels } from "../bucket-levels.ts";
import { readLimitKey } from "../limit-key.ts";

export async function consumeAndCheckLimit(
  request: CheckMessage,
  context: GrpcContext,
  call: CallInfo,
): Promise<CheckResponse> {
  const decision = await context.decide.one({
    ...readLimitKey(context.limiter.snapshot.policySet, request),
    cost: request.cost ?? 1,
    details: true,
    record: true,
    deadlineMs: call.deadlineMs,
    ...call.metadataId,
  });
  // The answer has no field for it.
  if (decision.degraded !== undefined)
    call.announce({ "x-ratelimit-degraded": "true", "x-ratelimit-degraded-reason": decision.degraded });
  const { remaining, index } = leastRemaining(decision);
  return {
    allowed: decision.allowed,
    remainingCapacity: remaining,
    limitingRateIndex: index,
    denyCount: decision.allowed ? 0 : decision.denyCount,
  };
}

/**
 * The bucket with the least left, in units and not in shares, and the index of its rate, all at the time of the take.
 * For a denial it is the remainder if the cost were taken, below 0.
 */
function leastRemaining(decision: Decision): { readonly remaining: number; readonly index: number } {
  const { allowed, remaining = decision.limit ?? 0, cost } = decision;
  const asked = allowed ? 0 : cost;
  let least = { remaining: remaining - asked, index: 0 };
  for (const [index, { remainingCapacity }] of bucketLevels(decision).entries()) {
    const left = remainingCapacity - asked;
    if (index === 0 || left < least.remaining) least = { remaining: left, index };
  }
  return least;
}
