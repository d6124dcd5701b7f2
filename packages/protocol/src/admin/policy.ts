import { problem } from "../http/error.ts";
import {
  anything,
  type BodyOf,
  boolean,
  choice,
  constant,
  described,
  epochMs,
  integer,
  jsonObject,
  listOf,
  text,
} from "../shapes/body-shape.ts";
import { objectOf, optional } from "../shapes/object-body.ts";
import { changeShape } from "./change.ts";
import { disabledPolicy } from "./disabled-policy.ts";
import { pageShape } from "./page.ts";
import { rollout } from "./rollout.ts";

/** A policy as it is written in a file: the fields of one entry of `policies`. */
export const policyDocument = described(jsonObject, "Written like an entry of `policies` in a policy file.");

/** The current version of a policy. */
export const policy = objectOf({
  id: text,
  version: integer,
  document: policyDocument,
  owner: optional(text),
  author: text,
  why: text,
  changed_ms: epochMs,
  rollout: optional(rollout),
  disabled: optional(described(disabledPolicy, "Set while the policy is disabled.")),
  overridden_by: optional(described(constant("file"), "A policy file has the same id, and files win.")),
});
export type PolicyBody = BodyOf<typeof policy>;

export const policyPage = pageShape(policy);

export const policyChange = changeShape({ policy });
export type PolicyChangeBody = BodyOf<typeof policyChange>;

/** The changes from one version to another. */
export const policyDiff = objectOf({
  policy: text,
  from: integer,
  to: integer,
  changes: listOf(
    objectOf({
      path: text,
      change: choice(["added", "removed", "changed"]),
      before: optional(anything),
      after: optional(anything),
    }),
  ),
  text: described(text, "Both as YAML, line by line: - only before, + only after."),
});
export type PolicyDiffBody = BodyOf<typeof policyDiff>;

/** The problems and warnings of a policy, and what it does. */
export const policyValidation = objectOf({
  valid: boolean,
  problems: listOf(problem),
  warnings: listOf(problem),
  prose: optional(described(listOf(text), "What the policy does, in sentences. Absent if it is not valid.")),
});
export type PolicyValidationBody = BodyOf<typeof policyValidation>;
