import type { StatusRequest, StatusResponse } from "@sluice/protocol/ratelimiter";
import type { CallInfo, GrpcContext } from "../../../data-plane/transports/grpc/method.ts";
import { bucketLevels } from "../bucket-levels.ts";
import { readLimitKey } from "../limit-key.ts";
import { refuseUncounted } from "../refuse-uncounted.ts";

/** Reads the counters once, and takes nothing. */
export async function getBucketStatus(
  request: StatusRequest,
  { limiter }: GrpcContext,
  { deadlineMs }: CallInfo,
): Promise<StatusResponse> {
  const key = readLimitKey(limiter.snapshot.policySet, request);
  const decision = await limiter.peek({ ...key, cost: 0, details: true, record: true, deadlineMs });
  // This node's own counts during an outage differ from the stored ones.
  refuseUncounted({ degraded: decision.degraded, limits: undefined });
  const records = (decision.limits ?? []).flatMap(({ shadow, record }) => (shadow || !record ? [] : [record]));
  return {
    levels: bucketLevels(decision),
    // 0 if these buckets have decided nothing yet, or have been idle since.
    lastUpdateTimestamp: Math.max(0, ...records.map(({ updatedMs = 0 }) => Math.floor(updatedMs))),
    denyCount: Math.max(0, ...records.map(({ denied }) => denied)),
  };
}
