import type { Path } from "../shape/reading.ts";
import { findMisfits } from "./parse-window.ts";
import { findPlanLimit, planLimitNames } from "./plan-limits.ts";
import type { PlacedPlanLimit } from "./plan-shape.ts";
import type { Limit, Policy } from "./policy.ts";

export interface ApplyPlansOptions {
  /** Whether there is such a policy, although it could not be read. */
  readonly isKnown: (id: string) => boolean;
  /** Reports a problem at its place in the document of the plan. */
  readonly note: (plan: PlacedPlanLimit, path: Path, message: string) => void;
}

/**
 * The policies with the windows of plans under the `tiers` of their limits, in the order given. A policy without plans
 * stays the same object.
 */
export function applyPlans(
  policies: readonly Policy[],
  plans: readonly PlacedPlanLimit[],
  { isKnown, note }: ApplyPlansOptions,
): readonly Policy[] {
  if (plans.length === 0) return policies;
  const byId = new Map(policies.map((policy, index) => [policy.id, index]));
  const result = [...policies];
  for (const plan of plans) {
    const index = byId.get(plan.policy);
    if (index !== undefined) result[index] = applyPlan(result[index]!, plan, note);
    else if (!isKnown(plan.policy))
      note(plan, [...plan.path, "policy"], `is ${plan.policy}, but no policy has that id`);
  }
  return result;
}

function applyPlan(policy: Policy, plan: PlacedPlanLimit, note: ApplyPlansOptions["note"]): Policy {
  const found = findPlanLimit(policy.id, planLimitNames(policy.limits), plan.limit);
  if (typeof found !== "number") {
    note(plan, [...plan.path, "limit"], found.problem);
    return policy;
  }
  const limit = policy.limits[found]!;
  if (Object.hasOwn(limit.tiers, plan.plan)) {
    const message = `policy ${plan.policy} has windows for ${plan.plan} already; write them in one place`;
    note(plan, plan.path, message);
    return policy;
  }
  for (const [index, window] of plan.windows.entries())
    for (const { field, message } of findMisfits(window, limit))
      note(plan, [...plan.path, "windows", index, field], message);
  const tiers: Limit["tiers"] = Object.assign(Object.create(null), limit.tiers, {
    [plan.plan]: { windows: plan.windows },
  });
  return { ...policy, limits: policy.limits.with(found, { ...limit, tiers }) };
}
