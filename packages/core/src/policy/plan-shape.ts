import { listOf } from "../shape/list-shapes.ts";
import { mapOf, objectOf } from "../shape/object-shapes.ts";
import { described, refine, type Shape, text } from "../shape/shape.ts";
import { windowsShape } from "./limit-shape.ts";
import { policyId, tierName } from "./names.ts";
import type { Window } from "./policy.ts";

/** The windows of one limit for the subjects of a plan. */
export interface PlanLimit {
  readonly policy: string;
  /** Absent: the only limit of the policy. */
  readonly limit?: string;
  readonly windows: readonly Window[];
}

/** The same, with the plan and its place in the document. */
export interface PlacedPlanLimit extends PlanLimit {
  readonly plan: string;
  readonly path: readonly (string | number)[];
}

/** A limit has at most 16 dimensions of 64 characters, and its name is no longer than that. */
export const maxPlanLimitNameLength = 2_048;

const planLimit: Shape<Omit<PlacedPlanLimit, "plan">> = refine(
  objectOf(
    { policy: described(policyId, "Id of the policy, or `default`."), windows: windowsShape },
    {
      limit: described(
        text({ max: maxPlanLimitNameLength }),
        "Name of the limit, or its dimensions with commas. Left out: the only limit of the policy.",
      ),
    },
  ),
  ({ policy, limit, windows }, { path }) => ({
    policy,
    ...(limit === undefined ? undefined : { limit }),
    windows,
    path,
  }),
);

const plan = objectOf({
  limits: described(listOf(planLimit), "The limits that have other windows for subjects of this plan."),
});

/** `plans`: tiers by name, each with its windows in one place instead of under the `tiers` of every limit. */
export const plansShape: Shape<readonly PlacedPlanLimit[]> = refine(
  mapOf(tierName, plan, { max: 256 }),
  (plans): readonly PlacedPlanLimit[] =>
    Object.entries(plans).flatMap(([name, { limits }]) => limits.map((limit) => ({ ...limit, plan: name }))),
);
