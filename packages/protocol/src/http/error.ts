import { errorCodes } from "sluice/internal";
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
  file: optional(described(text, "The name that the file was sent under.")),
  line: optional(integer),
  column: optional(integer),
});

/** An invalid field, `(root)` for the whole; with its line and column, counted from 1, if it came in a text. */
export type ProblemBody = BodyOf<typeof problemFields>;
export const problem: BodyShape<ProblemBody, ProblemBody> = asIs(problemFields);

/** An error as a body of RFC 9457, with Sluice's code and every invalid field. */
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
        "Every invalid field, the first 20 of them; then how many more. With its place if the body was YAML.",
      ),
    ),
    current_version: optional(described(integer, "With version_conflict: the current version; 0: none.")),
    current: optional(described(jsonObject, "With version_conflict of a subject: the stored subject.")),
  }),
);
export type ErrorBody = BodyOf<typeof error>;
