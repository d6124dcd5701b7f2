import { type BodyOf, boolean, described, listOf, text } from "../shapes/body-shape.ts";
import { objectOf } from "../shapes/object-body.ts";

/** The result of a reset. */
export const reset = objectOf({
  counters: described(
    listOf(objectOf({ policy: text, scope: text, subject: text })),
    "The counters that were deleted, each of one limit and subject.",
  ),
});
export type ResetBody = BodyOf<typeof reset>;

/** The result of giving back. */
export const givenBack = objectOf({
  given_back: described(
    boolean,
    "False if the receipt was void: used already, too old, or its counters were reset since.",
  ),
});
export type GivenBackBody = BodyOf<typeof givenBack>;
