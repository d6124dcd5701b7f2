import { type Expression, type ExpressionBuilder, type SqlBool, sql } from "kysely";
import type { KnownSubjectQuery, KnownSubjectRow, StoreView, TopSubjectsQuery, UsagePeak } from "../policy-store.ts";
import type { UsageStep } from "../records.ts";
import { textKey } from "../text-key.ts";
import type { Session } from "../transact.ts";
import { isOwned } from "./is-owned.ts";
import { parseLimit } from "./parse-limit.ts";

const stepSeconds: Readonly<Record<UsageStep, number>> = { minute: 60, hour: 3_600, day: 86_400 };

const sums = ["decided", "allowed", "denied", "cost", "degraded", "shadow_denied"] as const;

/** No text of ours sorts behind this one. */
const lastText = "\u{10ffff}";

/** What is summed up from usage for people: who used most, how high policies peaked, and which subjects there are. */
export function createUsageTopsView({
  tables,
  all,
}: Session): Pick<StoreView, "topSubjects" | "usagePeaks" | "knownSubjects"> {
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
          .select(sums.map((column) => total(column).as(`sum_${column}`)))
          .groupBy("subject")
          .orderBy(total(by), "desc")
          .orderBy("subject")
          .limit(parseLimit(atMost)),
      );
      return rows.map((row) => ({
        subject: row.subject,
        decided: row.sum_decided,
        allowed: row.sum_allowed,
        denied: row.sum_denied,
        cost: row.sum_cost,
        degraded: row.sum_degraded,
        shadowDenied: row.sum_shadow_denied,
      }));
    },

    async usagePeaks({ policies, ...query }): Promise<readonly UsagePeak[]> {
      const rows = await all(
        inPeriod(query)
          .where("policy", "in", policies)
          .where("subject", "<>", "(other)")
          .select(["policy", "limit_name", "dimension", sql<number>`cast(max(cost) as bigint)`.as("peak")])
          .groupBy(["policy", "limit_name", "dimension"]),
      );
      return rows.map(({ policy, limit_name, dimension, peak }) => ({
        policy,
        limit: limit_name,
        dimension,
        cost: peak,
      }));
    },

    async knownSubjects(query) {
      const { atMost, owned } = query;
      const limit = parseLimit(atMost);
      let series = tables
        .selectFrom("sluice_usage_series")
        .where("dimension", "<>", "")
        .where("subject", "<>", "(other)")
        .where((is) => matches(is, "subject_key", query));
      if (owned !== undefined) series = series.where((is) => isOwned(is, "policy", owned));
      const used = await all(
        series
          .select(["dimension", "subject as value", sql<number>`cast(max(seen_s) as bigint)`.as("seen")])
          .groupBy(["dimension", "subject_key", "subject"])
          .orderBy("dimension")
          .orderBy("subject_key")
          .limit(limit),
      );
      const configured = await all(
        tables
          .selectFrom("sluice_subjects")
          .where((is) => matches(is, "value_key", query))
          .select(["dimension", "subject as value"])
          .orderBy("dimension")
          .orderBy("value_key")
          .limit(limit),
      );
      // Denials of other teams' policies are not an editor's business.
      const denied =
        owned !== undefined
          ? []
          : await all(
              tables
                .selectFrom("sluice_denial_subjects")
                .where((is) => matches(is, "subject_key", query))
                .select(["dimension", "subject_key as value", sql<number>`cast(max(at_ms) as bigint)`.as("seen")])
                .groupBy(["dimension", "subject_key"])
                .orderBy("dimension")
                .orderBy("subject_key")
                .limit(limit),
            );
      return [
        ...used.map(({ dimension, value, seen }) => ({ dimension, value, by: "usage" as const, seenMs: seen * 1_000 })),
        ...configured.map((one) => ({ ...one, by: "configured" as const, seenMs: undefined })),
        ...denied.map(({ seen, ...one }) => ({ ...one, by: "denials" as const, seenMs: seen })),
      ] satisfies readonly KnownSubjectRow[];
    },
  };
}

/** Whether a subject begins with the prefix, and comes after the last one of the previous page. */
function matches(is: unknown, column: string, { prefix, dimension, after }: KnownSubjectQuery): Expression<SqlBool> {
  // Kysely cannot follow a column that is chosen at run time.
  const build = is as ExpressionBuilder<{ [table: string]: { [column: string]: unknown } }, string>;
  const conditions = [build(column, ">=", prefix), build(column, "<", prefix + lastText)];
  if (dimension !== undefined) conditions.push(build("dimension", "=", dimension));
  if (after !== undefined)
    conditions.push(
      build.or([
        build("dimension", ">", after.dimension),
        build.and([build("dimension", "=", after.dimension), build(column, ">", textKey(after.value))]),
      ]),
    );
  return build.and(conditions);
}

/** A sum as a whole number: PostgreSQL would answer with a decimal one. */
function total(column: string): ReturnType<typeof sql<number>> {
  return sql<number>`cast(sum(${sql.ref(column)}) as bigint)`;
}
