import { sql } from "kysely";
import type { StoreNote } from "../policy-store.ts";
import type { UsageStep } from "../records.ts";
import type { Session } from "../transact.ts";
import { parseLimit } from "./parse-limit.ts";
import { findPeriodStart, stepSeconds, sumColumns, total } from "./usage-sums.ts";

/** Marks an hour that is to be added up, in place of a node. */
const planned = "planned";

/** Adds minutes up to hours and days, and deletes what is old. */
export function createUsageUpkeep(
  session: Session,
): Pick<StoreNote, "planUsage" | "rollUpUsage" | "deleteOldestUsage" | "deleteUnusedUsageSeries"> {
  const { database, tables, all, run } = session;

  return {
    async planUsage() {
      const marked = await all(
        tables.selectFrom("sluice_usage_marks").select("hour_s").where("node", "<>", planned).groupBy("hour_s"),
      );
      const hours = marked.map(({ hour_s }) => hour_s).sort((a, b) => a - b);
      if (hours.length === 0) return;
      await run(tables.deleteFrom("sluice_usage_marks").where("hour_s", "in", hours).where("node", "<>", planned));
      await run(
        tables
          .insertInto("sluice_usage_marks")
          .values(hours.map((hour_s) => ({ hour_s, node: planned })))
          .onConflict((conflict) => conflict.columns(["hour_s", "node"]).doNothing()),
      );
    },

    async rollUpUsage() {
      // Another node that adds up hours waits here: both would write the sums of the same day.
      const [mark] = await all(
        tables
          .selectFrom("sluice_usage_marks")
          .select("hour_s")
          .where("node", "=", planned)
          .orderBy("hour_s")
          .limit(1)
          .$if(database.kind === "postgres", (query) => query.forUpdate()),
      );
      if (mark === undefined) return false;
      await run(tables.deleteFrom("sluice_usage_marks").where("hour_s", "=", mark.hour_s).where("node", "=", planned));
      await addUp(session, "minute", "hour", mark.hour_s);
      await addUp(session, "hour", "day", findPeriodStart("day", mark.hour_s));
      return true;
    },

    async deleteOldestUsage(step, beforeMs) {
      const step_s = stepSeconds[step];
      const [oldest] = await all(
        tables.selectFrom("sluice_usage").select("start_s").where("step_s", "=", step_s).orderBy("start_s").limit(1),
      );
      if (oldest === undefined || oldest.start_s * 1_000 >= beforeMs) return false;
      for (const table of ["sluice_usage", "sluice_usage_denials"] as const)
        await run(tables.deleteFrom(table).where("step_s", "=", step_s).where("start_s", "=", oldest.start_s));
      return true;
    },

    async deleteUnusedUsageSeries(beforeMs, limit) {
      await run(tables.deleteFrom("sluice_usage_flushes").where("at_ms", "<", beforeMs));
      const unused = tables
        .selectFrom("sluice_usage_series")
        .select("id")
        .where("seen_s", "<", Math.floor(beforeMs / 1_000))
        .limit(parseLimit(limit));
      return run(tables.deleteFrom("sluice_usage_series").where("id", "in", unused));
    },
  };
}

/**
 * Sums of the shorter periods within a longer one, in place of what was there, unless that was more: shorter periods are deleted
 * sooner, and a flush may come after that, from a node whose clock was wrong or that was cut off for weeks.
 */
async function addUp({ tables, run }: Session, from: UsageStep, to: UsageStep, start: number): Promise<void> {
  const within = { from: stepSeconds[from], to: stepSeconds[to] };
  const sums = tables
    .selectFrom("sluice_usage")
    .where("step_s", "=", within.from)
    .where("start_s", ">=", start)
    .where("start_s", "<", start + within.to);
  await run(
    tables
      .insertInto("sluice_usage")
      .columns(["series", "step_s", "start_s", ...sumColumns])
      .expression(
        sums
          .select(["series", constant(within.to).as("step_s"), constant(start).as("start_s")])
          .select(sumColumns.map((column) => total(column).as(column)))
          .groupBy("series"),
      )
      .onConflict((conflict) =>
        conflict
          .columns(["series", "step_s", "start_s"])
          .doUpdateSet(() =>
            Object.fromEntries(sumColumns.map((column) => [column, greater(`sluice_usage.${column}`, column)])),
          ),
      ),
  );
  await run(
    tables
      .insertInto("sluice_usage_denials")
      .columns(["series", "step_s", "start_s", "reason", "window_name", "denied"])
      .expression(
        tables
          .selectFrom("sluice_usage_denials")
          .where("step_s", "=", within.from)
          .where("start_s", ">=", start)
          .where("start_s", "<", start + within.to)
          .select(["series", constant(within.to).as("step_s"), constant(start).as("start_s"), "reason", "window_name"])
          .select(total("denied").as("denied"))
          .groupBy(["series", "reason", "window_name"]),
      )
      .onConflict((conflict) =>
        conflict
          .columns(["series", "step_s", "start_s", "reason", "window_name"])
          .doUpdateSet({ denied: greater("sluice_usage_denials.denied", "denied") }),
      ),
  );
}

/** What is stored, or what was added up now. */
function greater(stored: string, column: string): ReturnType<typeof sql<number>> {
  const [before, now] = [sql.ref(stored), sql.ref(`excluded.${column}`)];
  return sql<number>`case when ${now} > ${before} then ${now} else ${before} end`;
}

function constant(value: number): ReturnType<typeof sql<number>> {
  return sql<number>`cast(${value} as bigint)`;
}
