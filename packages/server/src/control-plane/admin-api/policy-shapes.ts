import { rolloutRequest } from "@sluice/protocol/admin";
import { described, integer, objectOf, refine, type Shape, text } from "sluice";
import type { PolicyDocument, RolloutWish } from "../control-plane.ts";
import { maxVersion, maxWhyLength } from "./query-words.ts";

/** What any body of a change may say beside what it is about. */
export const changeFields: {
  readonly why: Shape<string>;
  readonly expected_version: Shape<number>;
} = {
  why: described(text({ max: maxWhyLength }), "Why it is wanted, for the history."),
  expected_version: described(
    integer({ min: 0, max: maxVersion }),
    "The version that you saw, like If-Match; 0: none.",
  ),
};

const rolloutShape: Shape<RolloutWish> = refine(
  rolloutRequest,
  ({ steps, by, shadow, starts_ms, observe_for_ms, expect_more_denials }) => ({
    steps: steps?.map(({ percent, hold_ms }) => ({ percent, holdMs: hold_ms })),
    by,
    shadow,
    startsMs: starts_ms,
    observeForMs: observe_for_ms,
    expectMoreDenials: expect_more_denials,
  }),
);

/** A policy to be kept, and how. */
export interface PolicyRequest {
  readonly document: PolicyDocument;
  readonly rollout?: RolloutWish | undefined;
  readonly why?: string | undefined;
  readonly expected_version?: number | undefined;
}

const document: Shape<PolicyDocument> = {
  name: "a policy",
  schema: { type: "object", description: "A policy as it stands in a policy file, under `policies`." },
  read: (value, reading) =>
    isObject(value) ? value : reading.problem("must be an object, like one entry of `policies` in a policy file"),
};

const envelope: Shape<PolicyRequest> = objectOf(
  { document },
  { rollout: described(rolloutShape, "Goes out by steps, instead of to all subjects at once."), ...changeFields },
);

/** A policy as it stands in a file; or that under `document`, beside what is to be done with it. */
export const policyShape: Shape<PolicyRequest> = {
  name: "a policy",
  schema: { oneOf: [{ ...document.schema, not: { required: ["document"] } }, envelope.schema] },
  read(value, reading) {
    if (isObject(value) && Object.hasOwn(value, "document")) return envelope.read(value, reading);
    return isObject(value)
      ? { document: value }
      : reading.problem("must be a policy, like one entry of `policies` in a policy file");
  },
};

function isObject(value: unknown): value is PolicyDocument {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** The body of a revert. */
export const revertShape: Shape<{
  readonly version: number;
  readonly rollout?: RolloutWish;
  readonly why?: string;
  readonly expected_version?: number;
}> = objectOf(
  { version: described(integer({ min: 1, max: maxVersion }), "The version whose words come back, as a new version.") },
  { rollout: rolloutShape, ...changeFields },
);

/** What may be said of a move of a rollout. */
export const moveShape: Shape<{ readonly why?: string; readonly expected_step?: number }> = objectOf(
  {},
  {
    why: changeFields.why,
    expected_step: described(
      integer({ min: -1, max: 100 }),
      "The step that was seen, -1 before the first: so that two who advance it at once take one step, not two.",
    ),
  },
);
