import type { LeaseBody } from "@sluice/protocol/http";
import type { LeaseReply } from "../exchange.ts";
import { decodeDecisionBody, isBody } from "./decode-decision-body.ts";

/** Decodes a lease from JSON. Undefined if it is not one. */
export function decodeLeaseBody(body: unknown): LeaseReply | undefined {
  if (!isBody<LeaseBody>(body)) return undefined;
  const { granted, epoch, forgotten, lease_ms: leaseMs, stale_ms: staleMs, cost } = body;
  const decision = decodeDecisionBody(body.decision);
  if (decision === undefined || !isWhole(granted) || !isWhole(epoch) || !isWhole(leaseMs) || !isWhole(staleMs))
    return undefined;
  return {
    granted,
    epoch,
    forgotten: isWhole(forgotten) ? forgotten : 0,
    leaseMs,
    staleMs,
    cost: isWhole(cost) ? Math.max(cost, 1) : 1,
    decision,
  };
}

function isWhole(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) >= 0;
}
