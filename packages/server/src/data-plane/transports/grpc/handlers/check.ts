import type { CheckRequest as CheckMessage } from "@sluice/protocol";
import type { Decision } from "sluice";
import { readCheck } from "../check-message.ts";
import type { CallInfo, GrpcContext } from "../method.ts";

export function check(request: CheckMessage, context: GrpcContext, call: CallInfo): Decision | Promise<Decision> {
  const asked = readCheck(request, call.deadlineMs);
  const identified = asked.id === undefined && context.idempotencyHeader ? { ...asked, ...call.metadataId } : asked;
  return context.decide.one(identified);
}
