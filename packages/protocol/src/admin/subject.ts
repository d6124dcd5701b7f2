import { window } from "../http/window.ts";
import {
  type BodyOf,
  byKind,
  choice,
  constant,
  described,
  epochMs,
  finite,
  fromView,
  integer,
  listOf,
  number,
  text,
  type ViewOf,
} from "../shapes/body-shape.ts";
import { objectOf, optional } from "../shapes/object-body.ts";
import { changeOf } from "./change.ts";
import { pageOf } from "./page.ts";

/** A custom limit of a subject, or with an end an override. */
export const subjectLimit = objectOf({
  policy: text,
  limit: optional(text),
  windows: listOf(text),
  until_ms: optional(epochMs),
  reason: text,
  author: text,
  at_ms: epochMs,
});
export type SubjectLimitBody = BodyOf<typeof subjectLimit>;

const ownFields = { tier: optional(text), limits: listOf(subjectLimit) };
const keptFields = { dimension: text, value: text, version: integer, ...ownFields };

/** What is kept of a subject: its tier, its custom limits and its overrides. */
export const keptSubject = objectOf(keptFields);
export type KeptSubjectBody = BodyOf<typeof keptSubject>;

const asWritten = objectOf({ kind: choice(["policy", "custom"]) });

const windowUsage = objectOf({
  window,
  used: number,
  remaining: number,
  reset_after_ms: optional(finite(number)),
});
export type WindowUsageBody = BodyOf<typeof windowUsage>;

/** A limit that holds for a subject, where its windows come from, and how its counters stand. */
export const effectiveLimit = objectOf({
  policy: text,
  version: integer,
  limit: text,
  by: listOf(text),
  algorithm: text,
  windows: listOf(window),
  source: byKind({
    policy: asWritten,
    custom: asWritten,
    tier: objectOf({ kind: constant("tier"), tier: text }),
    override: objectOf({ kind: constant("override"), until_ms: epochMs }),
  }),
  mode: choice(["enforce", "shadow"]),
  usage: optional(listOf(windowUsage)),
});
export type EffectiveLimitBody = BodyOf<typeof effectiveLimit>;

/** A subject, with every limit that holds for it. */
export const subject = objectOf({ ...keptFields, effective: listOf(effectiveLimit) });
export type SubjectBody = BodyOf<typeof subject>;

export const subjectPage = pageOf(keptSubject);

const supersededLimit = fromView(effectiveLimit, (limit: Omit<ViewOf<typeof effectiveLimit>, "usage">) => ({
  ...limit,
  usage: undefined,
}));

const replacedFields = {
  replaced: optional(described(objectOf(ownFields), "What was replaced or deleted. Absent: nothing was.")),
  in_place_of: optional(
    described(
      listOf(supersededLimit),
      "For a new limit or override: the limits whose windows it replaces, as they were. Absent: nothing changed.",
    ),
  ),
};

export const subjectChange = changeOf({ ...replacedFields, subject });
export type SubjectChangeBody = BodyOf<typeof subjectChange>;

export const subjectDeletion = changeOf(replacedFields);
export type SubjectDeletionBody = BodyOf<typeof subjectDeletion>;

/** How the counters of a subject stand. */
export const subjectUsage = objectOf({ dimension: text, value: text, limits: listOf(effectiveLimit) });
export type SubjectUsageBody = BodyOf<typeof subjectUsage>;

/** Which limits' counters a reset deleted, as `policy/limit`, and which it passed over for want of other dimensions. */
export const subjectReset = changeOf({
  limits: listOf(text),
  skipped: listOf(objectOf({ limit: text, by: listOf(text) })),
});
export type SubjectResetBody = BodyOf<typeof subjectReset>;
