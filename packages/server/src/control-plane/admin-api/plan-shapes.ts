import { maxPlanLimitNameLength } from "sluice/internal";
import { described, listOf, objectOf, type Shape, text } from "sluice/shape";
import type { PlanLimitRequest } from "../plan-control.ts";
import type { RolloutRequest } from "../rollout-control.ts";
import { changeFields, rolloutShape } from "./policy-shapes.ts";
import { windows } from "./subject-shapes.ts";

/** A plan to store. */
export interface PlanBody {
  readonly limits: readonly PlanLimitRequest[];
  readonly rollout?: RolloutRequest;
  readonly why?: string;
  readonly expected_version?: number;
}

const limit = objectOf(
  { policy: described(text({ max: 128 }), "The policy, or `default`."), windows },
  {
    limit: described(
      text({ max: maxPlanLimitNameLength }),
      "The limit's name, else its dimensions with commas. Default: the only limit of the policy.",
    ),
    by: described(
      listOf(text({ max: 64 }), { max: 16 }),
      "The limit's dimensions, which answers have. Not used: a plan does not change them.",
    ),
  },
);

export const planShape: Shape<PlanBody> = objectOf(
  { limits: described(listOf(limit), "All limits with windows for this plan; others lose theirs.") },
  {
    rollout: described(
      rolloutShape,
      "Rolls out each policy that changes in steps, instead of to all subjects at once.",
    ),
    ...changeFields,
  },
);
