import { type BodyOf, choice, described, epochMs, listOf, text } from "../shapes/body-shape.ts";
import { objectOf, optional } from "../shapes/object-body.ts";
import { changeShape } from "./change.ts";

/** How long a policy may be disabled. */
export const disablingBounds: { readonly leastMs: number; readonly mostMs: number } = {
  leastMs: 1_000,
  mostMs: 7 * 24 * 3_600_000,
};

export const disabledModes = ["allow", "shadow"] as const;

/** A policy that does not limit for a while. */
export const disabledPolicy = objectOf({
  policy: text,
  mode: described(
    choice(disabledModes),
    "allow: the policy neither decides nor counts. shadow: it decides, counts and reports, and never denies.",
  ),
  since_ms: epochMs,
  until_ms: described(epochMs, "When it is in force again, automatically."),
  reason: text,
  author: text,
});
export type DisabledPolicyBody = BodyOf<typeof disabledPolicy>;

export const disabledPolicies = objectOf({ items: listOf(disabledPolicy) });
export type DisabledPoliciesBody = BodyOf<typeof disabledPolicies>;

export const disablingChange = changeShape({
  disabled: optional(described(disabledPolicy, "Absent: the policy is in force.")),
});
export type DisablingChangeBody = BodyOf<typeof disablingChange>;
