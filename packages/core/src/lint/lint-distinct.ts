import type { Limit } from "../policy/policy.ts";

export interface DistinctWarning {
  readonly key: "distinct" | "block_for";
  readonly message: string;
}

/** Warns about limits on distinct values that never deny, or deny more than they seem to. */
export function lintDistinct({ by, distinct, blockForMs }: Limit): readonly DistinctWarning[] {
  if (distinct === undefined) return [];
  const warnings: DistinctWarning[] = [];
  if (by.includes(distinct)) {
    const message = `is ${distinct}, which the limit also counts by: each subject has one value of it, and none is ever denied`;
    warnings.push({ key: "distinct", message });
  }
  if (blockForMs > 0) {
    const message = `also denies values that were seen in the window, because a block is of the whole subject`;
    warnings.push({ key: "block_for", message });
  }
  return warnings;
}
