import { Decision as DecisionMessage, LeaseResponse } from "@sluice/protocol";
import type { LeaseReply } from "../exchange.ts";
import { decodeDecision } from "./decode-decision.ts";

/** Decodes a lease. */
export function decodeLease(message: object = {}): LeaseReply {
  const { granted, epoch, forgotten, leaseMs, staleMs, cost, decision } = LeaseResponse.fromPartial(message);
  return {
    granted,
    epoch,
    forgotten,
    leaseMs,
    staleMs,
    cost: Math.max(cost, 1),
    decision: decodeDecision(decision ?? DecisionMessage.create(), false),
  };
}
