import { problem } from "../http/error.ts";
import { type BodyOf, choice, described, integer, listOf, number, text } from "../shapes/body-shape.ts";
import { objectOf, optional } from "../shapes/object-body.ts";
import { changeShape } from "./change.ts";
import { policyDocument } from "./policy.ts";

/** Policy files that are imported together, in place of the text of one. */
export interface PolicyFilesBody {
  /** Each with the name that problems are reported under, and its text in YAML or JSON. */
  readonly files: readonly { readonly file: string; readonly text: string }[];
}

const countedSubjects = described(
  objectOf({ count: integer, first: listOf(objectOf({ dimension: text, value: text })) }),
  "Their number, and the first 100 of them.",
);
export type CountedSubjectsBody = BodyOf<typeof countedSubjects>;

const subjectReport = objectOf({ created: countedSubjects, changed: countedSubjects, deleted: countedSubjects });

/** The effect of an import on policies and subjects. */
export const importReport = objectOf({
  created: listOf(text),
  changed: listOf(text),
  deleted: listOf(text),
  unchanged: integer,
  subjects: subjectReport,
  generation_before: described(integer, "The generation before the import. After a dry run, send it as `If-Match`."),
});
export type ImportReportBody = BodyOf<typeof importReport>;

export const importChange = changeShape({ import: importReport });
export type ImportChangeBody = BodyOf<typeof importChange>;

/** What an import would do to one policy. */
const plannedPolicy = objectOf({
  policy: text,
  action: choice(["create", "change", "delete", "unchanged"]),
  version: described(integer, "The version that is there; 0: none."),
  document: optional(
    described(policyDocument, "What would be stored. Only of what is created or changed, and of the first 2 MB."),
  ),
  diff: optional(
    described(
      text,
      "What is there and what would be, as YAML, line by line: - only before, + only after. Like document.",
    ),
  ),
  rollout: optional(
    described(
      objectOf({ id: text, to_version: integer, percent: number }),
      "A rollout of the policy that is underway. The policy cannot be changed before it ends.",
    ),
  ),
});
export type PlannedPolicyBody = BodyOf<typeof plannedPolicy>;

/** What an import of policy files would do: its dry run, for everyone who may read policies. */
export const importPlan = objectOf({
  generation: described(integer, "The generation that it was compared with. Send it as `If-Match` of the import."),
  policies: described(listOf(plannedPolicy), "In order of their ids; deletions last."),
  subjects: subjectReport,
  subjects_in_files: described(integer, "How many subjects the files name."),
  warnings: described(listOf(problem), "What is legal, but may surprise, with its place."),
});
export type ImportPlanBody = BodyOf<typeof importPlan>;
