import { hold, holdAnswer } from "@sluice/protocol/http";
import { type ReserveRequest, renderHeaders } from "sluice";
import { maxHoldAmount, maxHoldTtlMs } from "sluice/internal";
import { boolean, described, integer, objectOf, parseShape, refine, type Shape, text } from "sluice/shape";
import { answerDecision } from "../answer-decision.ts";
import { reserveFields } from "../check-body.ts";
import type { HttpContext, HttpRequest, HttpResponse } from "../exchange.ts";

const id = described(text({ max: 4096 }), "The hold's id, from the answer that made it.");
const amount = (description: string): Shape<number> => described(integer({ min: 1, max: maxHoldAmount }), description);
const ttlMs = integer({ min: 1, max: maxHoldTtlMs });

/** The body of a request that holds an amount. */
export const reserveShape: Shape<ReserveRequest> = refine(
  objectOf(
    {},
    {
      ...reserveFields,
      amount: amount("Exactly this much is held. Not together with estimate."),
      estimate: amount(
        "A guess, cut to what the smallest limit ever holds. Absent, as amount: the policies' cost for the endpoint.",
      ),
      ttl_ms: described(ttlMs, "How long it is held if nothing is reported.", { default: 60_000 }),
    },
  ),
  ({ ttl_ms: ttlMs, deadline_ms: deadlineMs, ...rest }, reading) =>
    rest.amount !== undefined && rest.estimate !== undefined
      ? reading.problem("cannot be combined with amount: one or the other is held", "estimate")
      : { ...rest, ttlMs, deadlineMs },
);

export const commitShape: Shape<{ readonly id: string; readonly actual: number; readonly last?: boolean }> = objectOf(
  {
    id,
    actual: described(integer({ min: 0, max: maxHoldAmount }), "What the work has cost so far, in all."),
  },
  { last: described(boolean, "False: the work goes on, and the rest is still held.", { default: true }) },
);

export const extendShape: Shape<{ readonly id: string; readonly ttl_ms: number }> = objectOf({
  id,
  ttl_ms: described(ttlMs, "How long from now it is held at least."),
});

export const cancelShape: Shape<{ readonly id: string }> = objectOf({ id });

/** POST /v1/reserve: charges an amount for work whose cost is known later. */
export async function reserve({ body }: HttpRequest, context: HttpContext): Promise<HttpResponse> {
  const asked = parseShape(reserveShape, body, "invalid_request", "the body");
  const held = await context.holds.reserve(asked);
  if (!held.decision.allowed) return answerDecision(held.decision, context);
  return { status: 200, headers: renderHeaders(held.decision, { random: context.random }), body: hold.render(held) };
}

/** POST /v1/commit: reports what the work has cost. */
export async function commit({ body }: HttpRequest, { holds }: HttpContext): Promise<HttpResponse> {
  const { id, actual, last = true } = parseShape(commitShape, body, "invalid_request", "the body");
  return { status: 200, body: holdAnswer.render(await holds.commit(id, actual, last)) };
}

/** POST /v1/extend: holds for longer. */
export async function extend({ body }: HttpRequest, { holds }: HttpContext): Promise<HttpResponse> {
  const { id, ttl_ms } = parseShape(extendShape, body, "invalid_request", "the body");
  return { status: 200, body: holdAnswer.render(await holds.extend(id, ttl_ms)) };
}

/** POST /v1/cancel: settles by what was reported so far. */
export async function cancel({ body }: HttpRequest, { holds }: HttpContext): Promise<HttpResponse> {
  const { id } = parseShape(cancelShape, body, "invalid_request", "the body");
  return { status: 200, body: holdAnswer.render(await holds.cancel(id)) };
}
