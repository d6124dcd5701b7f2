import type { OneOutcome } from "sluice/store";
import { createOneOutcome } from "sluice/store";
import { decodeAheads, decodeArrival, decodeArrivals, decodeMarks } from "./decode-reply.ts";
import type { GuardedShard } from "./guarded-shard.ts";
import type { Pending } from "./pending.ts";
import { type AnyArrivals, ArrivalQuestion, type Held, nextOrder } from "./question.ts";

/**
 * The outcome of one arrival after the other. It is overwritten for the next one, so an asker's `decide` reads it
 * before it returns and does not keep it. That is safe because nothing here awaits.
 */
let outcome: OneOutcome | undefined;

/** Settles the reply of the arrivals script. All pendings are of that operation, in the order they were sent in. */
export function settleArrivals(pendings: readonly Pending[], reply: unknown, nowUs: number, shard: GuardedShard): void {
  const aheads = decodeAheads(reply);
  const marks = decodeMarks(reply);
  let next = 0;
  let nextMark = 0;
  for (const pending of pendings) {
    const question = pending.question as AnyArrivals;
    const at = next;
    const markAt = nextMark;
    next += question.count;
    if (question.holdMs > 0) nextMark += 2 * question.count;
    if (pending.settled) continue;
    pending.settled = true;
    try {
      if (question instanceof ArrivalQuestion) {
        pending.resolve(answerArrival(question, aheads[at]!, nowUs));
        continue;
      }
      const { limits, holdMs } = question;
      const held: Held | undefined =
        holdMs === 0
          ? undefined
          : {
              shard,
              connections: shard.connections,
              nowUs,
              aheads: aheads.slice(at, next),
              marks: marks.slice(markAt, nextMark),
            };
      pending.resolve(decodeArrivals(limits, aheads, at, nowUs, held));
    } catch (error) {
      pending.reject(error);
    }
  }
}

/** What its asker makes of the answer. */
function answerArrival(
  { asker, limit, window, subject, cost }: ArrivalQuestion,
  ahead: number,
  nowUs: number,
): unknown {
  outcome ??= createOneOutcome(window);
  outcome.atMs = nowUs / 1000;
  outcome.order = nextOrder();
  decodeArrival(window, cost, ahead, outcome);
  return asker.decide(limit, subject, cost, outcome);
}

/** What its asker makes of a missing answer. */
export function failArrival(
  { asker, request }: ArrivalQuestion,
  error: Error,
  resolve: Pending["resolve"],
  reject: Pending["reject"],
): void {
  try {
    resolve(asker.fail(request, error));
  } catch (thrown) {
    reject(thrown);
  }
}
