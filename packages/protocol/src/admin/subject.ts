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
import { changeShape } from "./change.ts";
import { pageShape } from "./page.ts";

/** How far ahead an override may end. */
export const maxOverrideMs: number = 366 * 86_400_000;

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

/** While it lasts, the subject is denied, whatever room it has. */
export const subjectBlock = objectOf({
  policies: optional(described(listOf(text), "Only these policies deny. Absent: it is denied everything.")),
  until_ms: epochMs,
  reason: text,
  author: text,
  at_ms: epochMs,
});
export type SubjectBlockBody = BodyOf<typeof subjectBlock>;

const ownFields = { tier: optional(text), limits: listOf(subjectLimit), block: optional(subjectBlock) };
const storedFields = { dimension: text, value: text, version: integer, ...ownFields };

/** A subject as stored: its tier, its custom limits and its overrides. */
export const keptSubject = objectOf(storedFields);
export type KeptSubjectBody = BodyOf<typeof keptSubject>;

const asWritten = objectOf({ kind: choice(["policy", "custom"]) });

const windowUsage = objectOf({
  window,
  used: number,
  remaining: number,
  reset_after_ms: optional(finite(number)),
});
export type WindowUsageBody = BodyOf<typeof windowUsage>;

/** A limit that applies to a subject, the source of its windows, and the state of its counters. */
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

/** A subject, with every limit that applies to it. */
export const subject = objectOf({ ...storedFields, effective: listOf(effectiveLimit) });
export type SubjectBody = BodyOf<typeof subject>;

export const subjectPage = pageShape(keptSubject);

const supersededLimit = fromView(effectiveLimit, (limit: Omit<ViewOf<typeof effectiveLimit>, "usage">) => ({
  ...limit,
  usage: undefined,
}));

const replacedFields = {
  replaced: optional(described(objectOf(ownFields), "The values that were replaced or deleted. Absent: none.")),
  in_place_of: optional(
    described(
      listOf(supersededLimit),
      "For a new limit or override: the limits whose windows it replaces, as they were. Absent: nothing changed.",
    ),
  ),
};

export const subjectChange = changeShape({ ...replacedFields, subject });
export type SubjectChangeBody = BodyOf<typeof subjectChange>;

export const subjectDeletion = changeShape(replacedFields);
export type SubjectDeletionBody = BodyOf<typeof subjectDeletion>;

/** The state of a subject's counters. */
export const subjectUsage = objectOf({ dimension: text, value: text, limits: listOf(effectiveLimit) });
export type SubjectUsageBody = BodyOf<typeof subjectUsage>;

/**
 * The limits whose counters a reset deleted, as `policy/limit`, and those it skipped because other dimensions were
 * missing.
 */
export const subjectReset = changeShape({
  limits: listOf(text),
  skipped: listOf(objectOf({ limit: text, by: listOf(text) })),
});
export type SubjectResetBody = BodyOf<typeof subjectReset>;
