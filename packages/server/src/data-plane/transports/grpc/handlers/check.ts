import type { CheckRequest as CheckMessage, Decision as DecisionMessage } from "@sluice/protocol";
import { whenDecided } from "../../../service/decide.ts";
import { readCheck } from "../check-message.ts";
import { decisionMessage } from "../decision-message.ts";
import type { CallInfo, GrpcContext } from "../method.ts";

export function check(
  request: CheckMessage,
  context: GrpcContext,
  call: CallInfo,
): DecisionMessage | Promise<DecisionMessage> {
  const asked = readCheck(request, call.deadlineMs);
  const identified = asked.id === undefined && context.idempotencyHeader ? { ...asked, ...call.metadataId } : asked;
  return whenDecided(context.decide.one(identified), decisionMessage);
}
