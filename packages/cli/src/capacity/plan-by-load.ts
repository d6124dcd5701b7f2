import type { CapacityInput } from "./capacity-input.ts";
import type { CapacityPlan } from "./capacity-plan.ts";
import { planCapacity } from "./plan-capacity.ts";

export interface LoadStep {
  readonly factor: number;
  readonly checks_per_second: number;
  /** Undefined: no cluster is large enough. */
  readonly plan: CapacityPlan | undefined;
}

const factors = [1 / 16, 1 / 8, 1 / 4, 1 / 2, 1, 2, 4, 8];

/** The same fleet for less and more traffic: subjects and the whale grow with it. */
export function planByLoad(input: CapacityInput): readonly LoadStep[] {
  return factors.map((factor) => {
    const { demand, whale } = input;
    const checks = demand.checks_per_second * factor;
    const scaled = {
      ...input,
      demand: { ...demand, checks_per_second: checks, subjects: demand.subjects * factor },
      whale: { ...whale, checks_per_second: whale.checks_per_second * factor, limit: whale.limit * factor },
    };
    return { factor, checks_per_second: checks, plan: tryPlan(scaled) };
  });
}

function tryPlan(input: CapacityInput): CapacityPlan | undefined {
  try {
    return planCapacity(input);
  } catch (error) {
    if (error instanceof RangeError) return undefined;
    throw error;
  }
}
