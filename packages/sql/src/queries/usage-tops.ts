import { sql } from "kysely";
import type { StoreView, TopSubjectsQuery, UsagePeak } from "../policy-store.ts";
import type { Session } from "../transact.ts";
import { isOwned } from "./is-owned.ts";
import { parseLimit } from "./parse-limit.ts";
import { countsFromRow, stepSeconds, sumColumns, total } from "./usage-sums.ts";

/** What is summed up from usage for people: who used most, and how high policies peaked. */
export function createUsageTopsView({ tables, all }: Session): Pick<StoreView, "topSubjects" | "usagePeaks"> {
  const inPeriod = ({ step, fromMs, toMs }: Pick<TopSubjectsQuery, "step" | "fromMs" | "toMs">) =>
    tables
      .selectFrom("sluice_usage_series")
      .innerJoin("sluice_usage", "sluice_usage.series", "sluice_usage_series.id")
      .where("step_s", "=", stepSeconds[step])
      .where("start_s", ">=", Math.ceil(fromMs / 1_000))
      .where("start_s", "<", Math.ceil(toMs / 1_000));

  return {
    async topSubjects({ policy, owned, by, atMost, ...query }) {
      let selected = inPeriod(query).where("dimension", "=", query.dimension);
      if (policy !== undefined) selected = selected.where("policy", "=", policy);
      if (owned !== undefined) selected = selected.where((is) => isOwned(is, "policy", owned));
      const rows = await all(
        selected
          .select("subject")
          .select(sumColumns.map((column) => total(column).as(`sum_${column}`)))
          .groupBy("subject")
          .orderBy(total(by), "desc")
          .orderBy("subject")
          .limit(parseLimit(atMost)),
      );
      return rows.map((row) => ({ subject: row.subject, ...countsFromRow(row) }));
    },

    async usagePeaks({ policies, ...query }): Promise<readonly UsagePeak[]> {
      const rows = await all(
        inPeriod(query)
          .leftJoin("sluice_subjects", (join) =>
            join
              .onRef("sluice_subjects.dimension", "=", "sluice_usage_series.dimension")
              .onRef("sluice_subjects.value_key", "=", "sluice_usage_series.subject_key"),
          )
          .where("policy", "in", policies)
          .where("sluice_usage_series.subject", "<>", "(other)")
          .where(({ not, exists, selectFrom }) =>
            not(
              exists(
                selectFrom("sluice_subject_limits as own")
                  .select("own.policy")
                  .whereRef("own.dimension", "=", "sluice_usage_series.dimension")
                  .whereRef("own.value_key", "=", "sluice_usage_series.subject_key")
                  .whereRef("own.policy", "=", "sluice_usage_series.policy"),
              ),
            ),
          )
          .select([
            ...(["policy", "limit_name", "sluice_usage_series.dimension", "tier"] as const),
            sql<number>`cast(max(cost) as bigint)`.as("peak"),
          ])
          .groupBy(["policy", "limit_name", "sluice_usage_series.dimension", "tier"]),
      );
      return rows.map(({ policy, limit_name, dimension, tier, peak }) => ({
        policy,
        limit: limit_name,
        dimension,
        tier: tier ?? undefined,
        cost: peak,
      }));
    },
  };
}
