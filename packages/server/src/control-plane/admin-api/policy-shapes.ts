import { boolean, described, integer, listOf, number, objectOf, refine, type Shape, text } from "sluice";
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

const maxMoment = 8_640_000_000_000_000;

/** Milliseconds since 1970. */
export const moment: Shape<number> = integer({ min: 0, max: maxMoment });

const stepShape = objectOf({
  percent: described(number({ min: 0, max: 100 }), "Share of subjects under the new version."),
  hold_ms: described(integer({ min: 0, max: 366 * 86_400_000 }), "How long before the next step; 0: by hand."),
});

export const rolloutShape: Shape<RolloutWish> = refine(
  objectOf(
    {},
    {
      steps: described(
        listOf(stepShape, { min: 1, max: 100 }),
        "Left out: 1 % and 10 % for ten minutes each, then everybody.",
      ),
      by: described(text({ max: 128 }), "The dimension by whose value a subject is in or out."),
      shadow: described(boolean, "The old version decides, and what the new one would say is counted."),
      starts_ms: described(moment, "Not before then. Left out: the policy's valid_from, else now."),
      observe_for_ms: described(
        integer({ min: 0, max: 30 * 86_400_000 }),
        "How long the old version is watched first: 5 minutes at least, or 0, and the first step is not compared.",
      ),
      expect_more_denials: described(boolean, "The new version is meant to deny more: it is not rolled back for that."),
    },
  ),
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
export interface PolicyBody {
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

const envelope: Shape<PolicyBody> = objectOf(
  { document },
  { rollout: described(rolloutShape, "Goes out by steps, instead of to everybody at once."), ...changeFields },
);

/** A policy as it stands in a file; or that under `document`, beside what is to be done with it. */
export const policyShape: Shape<PolicyBody> = {
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
