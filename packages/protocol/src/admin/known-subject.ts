import { type BodyOf, choice, described, epochMs, listOf, text } from "../shapes/body-shape.ts";
import { objectOf, optional } from "../shapes/object-body.ts";
import { pageShape } from "./page.ts";

/** Where a subject is known from. */
export const subjectSources = ["configured", "usage", "denials"] as const;

/** A subject that was found by the beginning of its value. */
export const knownSubject = objectOf({
  dimension: text,
  value: text,
  known_by: described(
    listOf(choice(subjectSources)),
    "configured: it has a tier, limits or an override. usage: it has a usage history. denials: it was denied lately.",
  ),
  seen_ms: optional(described(epochMs, "The day that it was last used, or its last denial. Absent: never.")),
});
export type KnownSubjectBody = BodyOf<typeof knownSubject>;

export const knownSubjectPage = pageShape(knownSubject);
