import { rolloutRequest } from "@sluice/protocol/admin";
import { described, integer, objectOf, refine, type Shape, text } from "sluice/shape";
import { maxWhyLength } from "../change.ts";
import type { PolicyDocument } from "../policy-control.ts";
import type { RolloutRequest } from "../rollout-control.ts";
import { maxVersion } from "./query-parameters.ts";

/** Fields that the body of any change may have. */
export const changeFields: {
  readonly why: Shape<string>;
  readonly expected_version: Shape<number>;
} = {
  why: described(text({ max: maxWhyLength }), "The reason, for the history."),
  expected_version: described(
    integer({ min: 0, max: maxVersion }),
    "The version that you saw, like If-Match; 0 if there was none.",
  ),
};

export const rolloutShape: Shape<RolloutRequest> = refine(
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

/** A policy to store, and how. */
export interface PolicyRequest {
  readonly document: PolicyDocument;
  readonly rollout?: RolloutRequest | undefined;
  readonly why?: string | undefined;
  readonly expected_version?: number | undefined;
}

const document: Shape<PolicyDocument> = {
  name: "a policy",
  schema: { type: "object", description: "A policy, written like an entry of `policies` in a policy file." },
  read: (value, reading) =>
    isObject(value) ? value : reading.problem("must be an object, like one entry of `policies` in a policy file"),
};

const envelope: Shape<PolicyRequest> = objectOf(
  { document },
  {
    rollout: described(rolloutShape, "Rolls the version out in steps, instead of to all subjects at once."),
    ...changeFields,
  },
);

/** A policy as in a policy file, or one under `document`, next to options for the change. */
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
  readonly rollout?: RolloutRequest;
  readonly why?: string;
  readonly expected_version?: number;
}> = objectOf(
  { version: described(integer({ min: 1, max: maxVersion }), "The version whose content becomes the new version.") },
  { rollout: rolloutShape, ...changeFields },
);

/** Options of an action on a rollout. */
export const moveShape: Shape<{ readonly why?: string; readonly expected_step?: number }> = objectOf(
  {},
  {
    why: changeFields.why,
    expected_step: described(
      integer({ min: -1, max: 100 }),
      "The step that you saw, -1 before the first, so that two callers that advance it at once take one step, not two.",
    ),
  },
);
