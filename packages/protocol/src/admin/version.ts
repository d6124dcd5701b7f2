import {
  type BodyOf,
  boolean,
  choice,
  described,
  epochMs,
  fromView,
  integer,
  text,
  type ViewOf,
} from "../shapes/body-shape.ts";
import { objectOf, optional } from "../shapes/object-body.ts";
import { pageShape } from "./page.ts";
import { policyDocument } from "./policy.ts";
import { rolloutStates } from "./rollout.ts";

const versionFields = objectOf({
  policy: text,
  version: integer,
  document: optional(policyDocument),
  deleted: boolean,
  author: text,
  why: text,
  at_ms: epochMs,
  revert_of: optional(integer),
  current: boolean,
  rollout: optional(
    described(
      objectOf({ id: text, state: choice(rolloutStates), shadow: boolean }),
      "The rollout of this version. Absent if it took effect for all subjects at once.",
    ),
  ),
});

/** One version of a policy, as it was written. One without a document deleted the policy. */
export const version = fromView(versionFields, (view: Omit<ViewOf<typeof versionFields>, "deleted">) => ({
  ...view,
  deleted: view.document === undefined,
}));
export type VersionBody = BodyOf<typeof version>;

export const versionPage = pageShape(version);
