import { disabledModes, disablingBounds, moment } from "@sluice/protocol/admin";
import { choice, described, integer, objectOf, refine, type Shape } from "sluice/shape";
import { changeFields } from "./policy-shapes.ts";

export interface DisableBody {
  readonly mode?: (typeof disabledModes)[number];
  readonly until_ms?: number;
  readonly for_ms?: number;
  readonly why?: string;
}

const { leastMs: min, mostMs: max } = disablingBounds;

/** How a policy is disabled, and for how long. */
export const disableShape: Shape<DisableBody> = refine(
  objectOf(
    {},
    {
      mode: described(
        choice(disabledModes),
        "allow: the policy neither decides nor counts. shadow: it decides, counts and reports, and never denies.",
        { default: "allow" },
      ),
      until_ms: described(moment, "When it is in force again. Default: an hour from now."),
      for_ms: described(integer({ min, max }), "How long from now. An alternative to until_ms."),
      why: described(changeFields.why, "The reason. Required, here or in the query."),
    },
  ),
  (body, reading) =>
    body.until_ms !== undefined && body.for_ms !== undefined
      ? reading.problem("cannot be combined with until_ms; send one of the two", "for_ms")
      : body,
);
