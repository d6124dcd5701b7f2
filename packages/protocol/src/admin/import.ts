import { type BodyOf, described, integer, listOf, text } from "../shapes/body-shape.ts";
import { objectOf } from "../shapes/object-body.ts";
import { changeOf } from "./change.ts";

const countedSubjects = described(
  objectOf({ count: integer, first: listOf(objectOf({ dimension: text, value: text })) }),
  "How many, and which: the first 100.",
);
export type CountedSubjectsBody = BodyOf<typeof countedSubjects>;

/** What an import did to policies and subjects. */
export const importReport = objectOf({
  created: listOf(text),
  changed: listOf(text),
  deleted: listOf(text),
  unchanged: integer,
  subjects: objectOf({ created: countedSubjects, changed: countedSubjects, deleted: countedSubjects }),
  generation_before: described(
    integer,
    "The generation before the import. After a dry run, what goes into `If-Match`.",
  ),
});
export type ImportReportBody = BodyOf<typeof importReport>;

export const importChange = changeOf({ import: importReport });
export type ImportChangeBody = BodyOf<typeof importChange>;
