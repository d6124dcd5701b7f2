import type { Kysely } from "kysely";
import type { StoreView, UsageQuery } from "../policy-store.ts";
import type { UsageCounts, UsageRow } from "../records.ts";
import { textKey } from "../text-key.ts";
import type { Session } from "../transact.ts";
import { isOwned } from "./is-owned.ts";
import { parseLimit } from "./parse-limit.ts";
import { countsFromRow, stepSeconds, sumColumns, total } from "./usage-sums.ts";

/** Field and column of what usage may be kept apart by. */
const groupColumns = { policy: "policy", limit: "limit_name", subject: "subject" } as const;

export function createUsageView({ tables, all }: Session): Pick<StoreView, "usage" | "usageDenials"> {
  // Kysely cannot follow a table that is chosen at run time.
  const untyped = tables as unknown as Kysely<{ [table: string]: { [column: string]: unknown } }>;

  /** The series that are asked for, joined with a table of their periods, in this order. */
  const filtered = (table: string, query: UsageQuery, order: readonly string[]) => {
    let selected = untyped
      .selectFrom("sluice_usage_series")
      .innerJoin(table, `${table}.series`, "sluice_usage_series.id")
      .where("step_s", "=", stepSeconds[query.step])
      .where("start_s", ">=", Math.ceil(query.fromMs / 1_000))
      .where("start_s", "<", Math.ceil(query.toMs / 1_000))
      .where("dimension", "=", query.dimension ?? "");
    if (query.policy !== undefined) selected = selected.where("policy", "=", query.policy);
    if (query.policies !== undefined) selected = selected.where("policy", "in", query.policies);
    if (query.limit !== undefined) selected = selected.where("limit_name", "=", query.limit);
    if (query.subject !== undefined) selected = selected.where("subject_key", "=", textKey(query.subject));
    const { owned } = query;
    if (owned !== undefined) selected = selected.where((is) => isOwned(is, "policy", owned));
    for (const column of order) selected = selected.orderBy(column);
    const { after } = query;
    if (after === undefined) return selected;
    const [startMs, ...fields] = after;
    const columns = ["start_s", ...query.by.map((field) => groupColumns[field])];
    const last = [startMs / 1_000, ...fields];
    // The first column that differs is greater.
    return selected.where((is) =>
      is.or(
        columns.map((column, i) =>
          is.and([...columns.slice(0, i).map((same, j) => is(same, "=", last[j])), is(column, ">", last[i])]),
        ),
      ),
    );
  };

  return {
    async usage(query) {
      const apart = ["start_s", ...query.by.map((field) => groupColumns[field])];
      const rows: readonly Row[] = await all(
        filtered("sluice_usage", query, apart)
          .select(apart)
          .select(sumColumns.map((column) => total(column).as(`sum_${column}`)))
          .groupBy(apart)
          .limit(parseLimit(query.atMost)),
      );
      return rows.map((row) => ({ ...periodFromRow(row, query), ...countsFromRow(row) }));
    },

    async usageDenials(query) {
      const apart = ["start_s", ...query.by.map((field) => groupColumns[field]), "reason", "window_name"];
      const rows: readonly Row[] = await all(
        filtered("sluice_usage_denials", query, apart)
          .select(apart)
          .select(total("denied").as("sum_denied"))
          .groupBy(apart)
          .limit(parseLimit(query.atMost)),
      );
      return rows.map((row) => {
        const { reason, window_name: window, sum_denied: denied } = row as unknown as DenialsRow;
        return { ...periodFromRow(row, query), reason, window, denied };
      });
    },
  };
}

type Row = Readonly<Record<string, unknown>>;

interface DenialsRow {
  readonly reason: string;
  readonly window_name: string;
  readonly sum_denied: number;
}

function periodFromRow(row: Row, { by, dimension }: UsageQuery): Omit<UsageRow, keyof UsageCounts> {
  return {
    startMs: (row.start_s as number) * 1_000,
    policy: by.includes("policy") ? (row.policy as string) : undefined,
    limit: by.includes("limit") ? (row.limit_name as string) : undefined,
    dimension: by.includes("subject") ? dimension : undefined,
    subject: by.includes("subject") ? (row.subject as string) : undefined,
  };
}
