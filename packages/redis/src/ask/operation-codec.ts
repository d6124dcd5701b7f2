import type { KeyNames } from "../place/key-names.ts";
import { decodeLeases } from "./decode-lease.ts";
import { decodeBlocks, decodeCharges, decodeCounts, decodePlan } from "./decode-reply.ts";
import { type Call, encodeArrivals, encodeBlocks, encodeCounts, encodePlan } from "./encode-call.ts";
import { encodeLeases } from "./encode-lease.ts";
import type { Pending } from "./pending.ts";
import type { AnyArrivals, Operation, Question, Reply } from "./question.ts";

/**
 * Encodes the call of a script. All pendings are of that operation. `serverNowMs` is the server's time as far as it is
 * known. `encodeArrivals` and `encodeCounts` write into buffers of their module, and copy out of them before they
 * return: calls share nothing.
 */
export function encodeOperation(
  operation: Operation,
  pendings: readonly Pending[],
  names: KeyNames,
  deadlineMs: number,
  serverNowMs: number,
): Call {
  if (operation === "takeArrivals") {
    return encodeArrivals(
      pendings.map(({ question }) => question as AnyArrivals),
      names,
      deadlineMs,
    );
  }
  const questions = pendings.map(({ question }) => question as Question);
  if (operation === "takeCounts") return encodeCounts(questions, names, deadlineMs);
  if (operation === "block") return encodeBlocks(questions, names, deadlineMs);
  if (operation === "lease") return encodeLeases(questions, names, deadlineMs, serverNowMs);
  return encodePlan(questions, names, deadlineMs, serverNowMs);
}

/** Decodes the answers, in order. `settleArrivals` reads those of `takeArrivals`. */
export function decodeOperation(
  operation: Exclude<Operation, "takeArrivals">,
  pendings: readonly Pending[],
  reply: readonly number[],
): readonly Reply[] {
  const questions = pendings.map(({ question }) => question as Question);
  if (operation === "takeCounts") return decodeCounts(questions, reply);
  if (operation === "block") return decodeBlocks(questions);
  if (operation === "lease") return decodeLeases(questions, reply);
  return operation === "charge" ? decodeCharges(questions, reply) : decodePlan(questions, reply);
}
