import type { Hold } from "sluice";
import type { HoldAnswer } from "sluice/store";
import { type BodyOf, boolean, choice, described, fromView, integer, text } from "../shapes/body-shape.ts";
import { objectOf, optional } from "../shapes/object-body.ts";
import { decision } from "./decision.ts";

/** A request that was allowed, and what is held for it. */
export const hold = fromView(
  objectOf({
    id: optional(
      described(text, "What settles it. Absent: nothing is held, because no limit applied or none could be counted."),
    ),
    amount: described(integer, "How much is held."),
    expires_at_ms: optional(described(integer, "Epoch milliseconds, by the counters' clock.")),
    decision,
  }),
  ({ id, amount, expiresAtMs, decision }: Pick<Hold, "id" | "amount" | "expiresAtMs" | "decision">) => ({
    id,
    amount,
    expiresAtMs,
    decision,
  }),
);
export type HoldBody = BodyOf<typeof hold>;

const state = choice(["held", "expired", "settled", "unknown"] satisfies readonly HoldAnswer["state"][]);

/** How a hold stands. */
export const holdAnswer = fromView(
  objectOf({
    state: described(state, "unknown: no such hold, or it ended more than ten minutes ago; nothing was changed."),
    amount: described(integer, "What was held."),
    actual: described(integer, "The cost that was reported."),
    overdraft: described(integer, "How much of that exceeds the amount. It was charged."),
    expired: described(boolean, "Whether it had expired before it was settled."),
    expires_at_ms: optional(described(integer, "When it expires, or did, in epoch milliseconds. Absent: unknown.")),
    replayed: described(boolean, "It was settled before: this is the answer that was given then."),
  }),
  (answer: HoldAnswer) => ({ ...answer, expiresAtMs: answer.state === "unknown" ? undefined : answer.expiresAtMs }),
);
export type HoldAnswerBody = BodyOf<typeof holdAnswer>;
