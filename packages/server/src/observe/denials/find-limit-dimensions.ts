import type { Limiter } from "sluice";
import { limitScope } from "sluice/internal";

/** The dimensions that a policy's limit counts by. Undefined if there is no such limit. */
export function findLimitDimensions(
  { policySet }: Limiter["snapshot"],
  policy: string,
  limit: string,
): readonly string[] | undefined {
  const { policies, fallback } = policySet;
  const found = policies.find(({ id }) => id === policy) ?? (fallback?.id === policy ? fallback : undefined);
  return found?.limits.find((one) => limitScope(one) === limit)?.by;
}
