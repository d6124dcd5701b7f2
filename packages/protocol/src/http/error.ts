import { errorCodes } from "sluice";
import {
  asIs,
  type BodyOf,
  type BodyShape,
  choice,
  described,
  integer,
  jsonObject,
  listOf,
  text,
} from "../shapes/body-shape.ts";
import { objectOf, optional } from "../shapes/object-body.ts";

const problemFields = objectOf({
  field: text,
  message: text,
  line: optional(integer),
  column: optional(integer),
});

/** A field that is wrong, `(root)` for the whole; with its line and column where it came in a text, counted from 1. */
export type ProblemBody = BodyOf<typeof problemFields>;
export const problem: BodyShape<ProblemBody, ProblemBody> = asIs(problemFields);

/** An error as a body of RFC 9457, with Sluice's code and every field that is wrong. */
export const error = asIs(
  objectOf({
    type: text,
    title: text,
    status: integer,
    code: choice(errorCodes),
    detail: text,
    problems: optional(
      described(
        listOf(problem),
        "Every field that is wrong, the first 20 of them; then how many more. With its place where the body was YAML.",
      ),
    ),
    current_version: optional(described(integer, "With version_conflict: the current version; 0: none.")),
    current: optional(described(jsonObject, "With version_conflict of a subject: what is kept of it.")),
  }),
);
export type ErrorBody = BodyOf<typeof error>;
