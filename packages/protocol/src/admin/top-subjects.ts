import { type BodyOf, choice, described, epochMs, integer, listOf, text } from "../shapes/body-shape.ts";
import { objectOf } from "../shapes/object-body.ts";

/** What subjects are ordered by. */
export const subjectOrders = ["decided", "denied", "cost"] as const;

/** The subjects that used most in a period. */
export const topSubjects = objectOf({
  dimension: text,
  by: choice(subjectOrders),
  step: described(choice(["minute", "hour", "day"]), "The length of the stored periods that were added up."),
  from_ms: described(epochMs, "The period, in whole steps."),
  to_ms: epochMs,
  items: described(
    listOf(
      objectOf({
        subject: described(text, "`(other)` stands for all subjects that are not tracked separately."),
        decided: integer,
        allowed: integer,
        denied: integer,
        cost: integer,
        degraded: integer,
        shadow_denied: integer,
      }),
    ),
    "The first one used most.",
  ),
});
export type TopSubjectsBody = BodyOf<typeof topSubjects>;
