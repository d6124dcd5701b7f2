import type { Limit } from "./policy.ts";

/**
 * The limit's name, else its dimensions: its name in decisions, metrics and text for people. A limit on distinct users
 * of a tenant is `tenant.distinct.user`, because a limit on the tenant's requests is `tenant`.
 */
export function limitScope({ name, by, distinct }: Pick<Limit, "name" | "by" | "distinct">): string {
  if (name !== undefined) return name;
  const dimensions = by.length === 0 ? "global" : by.join(",");
  return distinct === undefined ? dimensions : `${dimensions}.distinct.${distinct}`;
}
