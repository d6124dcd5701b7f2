import type { Expression, ExpressionBuilder, SqlBool } from "kysely";
import type { OwnedPolicies } from "../policy-store.ts";

/** Whether the policy that a column names belongs to a team. */
export function isOwned(is: unknown, column: string, { owner, also, except }: OwnedPolicies): Expression<SqlBool> {
  // Kysely cannot follow a column that is chosen at run time.
  const build = is as ExpressionBuilder<{ [table: string]: { [column: string]: unknown } }, string>;
  const stored = build.selectFrom("sluice_policies").select("id").where("owner", "=", owner);
  const inStore = build(column, "in", except.length === 0 ? stored : stored.where("id", "not in", except));
  return also.length === 0 ? inStore : build.or([inStore, build(column, "in", also)]);
}
