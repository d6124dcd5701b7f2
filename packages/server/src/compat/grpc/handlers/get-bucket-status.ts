import type { StatusRequest, StatusResponse } from "@sluice/protocol/ratelimiter";
import type { CallInfo, GrpcContext } from "../../../data-plane/transports/grpc/method.ts";
import { bucketLevels } from "../bucket-levels.ts";
import { readLimitKey } from "../limit-key.ts";
import { refuseUncounted } from "../refuse-uncounted.ts";

/** One look at the counters, which takes nothing. */
export async function getBucketStatus(
  request: StatusRequest,
  { limiter }: GrpcContext,
  { deadlineMs }: CallInfo,
): Promise<StatusResponse> {
  const key = readLimitKey(limiter.snapshot.policySet, request);
  const decision = await limiter.peek({ ...key, cost: 0, details: true, record: true, deadlineMs });
  // What this node counts by itself in an outage is not what is stored.
  refuseUncounted({ degraded: decision.degraded, limits: undefined });
  const records = (decision.limits ?? []).flatMap(({ shadow, record }) => (shadow || !record ? [] : [record]));
  return {
    levels: bucketLevels(decision),
    // 0 where nothing was decided by these buckets yet, or they are idle since.
    lastUpdateTimestamp: Math.max(0, ...records.map(({ updatedMs = 0 }) => Math.floor(updatedMs))),
    denyCount: Math.max(0, ...records.map(({ denied }) => denied)),
  };
}
