import { boolean, described, integer, listOf, number, objectOf, type Shape, text } from "sluice/shape";
import type { RolloutStepBody } from "./rollout.ts";

const maxMoment = 8_640_000_000_000_000;

/** Milliseconds since 1970, in requests. */
export const moment: Shape<number> = integer({ min: 0, max: maxMoment });

const stepRequest = objectOf({
  percent: described(number({ min: 0, max: 100 }), "Share of subjects under the new version."),
  hold_ms: described(
    integer({ min: 0, max: 366 * 86_400_000 }),
    "How long until the next step. 0: an operator advances it.",
  ),
});

/** How to roll out a new version. */
export interface RolloutRequestBody {
  readonly steps?: readonly RolloutStepBody[];
  readonly by?: string;
  readonly shadow?: boolean;
  readonly starts_ms?: number;
  readonly observe_for_ms?: number;
  readonly expect_more_denials?: boolean;
}

export const rolloutRequest: Shape<RolloutRequestBody> = objectOf(
  {},
  {
    steps: described(
      listOf(stepRequest, { min: 1, max: 100 }),
      "Default: 1 % and 10 % for ten minutes each, then all subjects.",
    ),
    by: described(text({ max: 128 }), "The dimension whose value puts a subject in or out."),
    shadow: described(boolean, "The old version decides, and the new one's decisions are only counted."),
    starts_ms: described(moment, "The earliest start. Default: the policy's valid_from, else now."),
    observe_for_ms: described(
      integer({ min: 0, max: 30 * 86_400_000 }),
      "How long the old version is watched first: at least 5 minutes, or 0, in which case the first step is not compared.",
    ),
    expect_more_denials: described(boolean, "The new version is meant to deny more: it is not rolled back for that."),
  },
);
