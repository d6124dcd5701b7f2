import { limitScope } from "./limit-scope.ts";
import type { Limit } from "./policy.ts";

/**
 * How plans name the limits of a policy: by name, else by dimensions (`tenant,user`), else `global`. A further limit
 * that would have the same name has a number behind it: `user#2`.
 */
export function planLimitNames(limits: readonly Pick<Limit, "name" | "by">[]): readonly string[] {
  const seen = new Map<string, number>();
  return limits.map((limit) => {
    const scope = limitScope(limit);
    const count = (seen.get(scope) ?? 0) + 1;
    seen.set(scope, count);
    return count === 1 ? scope : `${scope}#${count}`;
  });
}

/** The place of a limit among those of a policy, or what is wrong with its name. Without a name: the only one. */
export function findPlanLimit(
  policy: string,
  names: readonly string[],
  wanted: string | undefined,
): number | { readonly problem: string } {
  const has = names.length === 0 ? "it has no limits" : `it has ${names.join(" and ")}`;
  if (wanted === undefined)
    return names.length === 1 ? 0 : { problem: `is missing, and policy ${policy} has not exactly one limit; ${has}` };
  const index = names.indexOf(wanted);
  return index >= 0 ? index : { problem: `is ${wanted}, but policy ${policy} has no limit of that name; ${has}` };
}
