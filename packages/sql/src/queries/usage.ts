import { createHash } from "node:crypto";
import { type Kysely, sql } from "kysely";
import type { StoreNote, StoreView, UsageQuery } from "../policy-store.ts";
import type { UsageCounts, UsageRow, UsageSeries, UsageStep, UsageSum } from "../records.ts";
import { replaceUnstorable } from "../storable.ts";
import { textKey } from "../text-key.ts";
import type { Session } from "../transact.ts";
import { isOwned } from "./is-owned.ts";
import { parseLimit } from "./parse-limit.ts";

const stepSeconds: Readonly<Record<UsageStep, number>> = { minute: 60, hour: 3_600, day: 86_400 };

/** Rows in one statement: SQLite takes 32 766 parameters, and a row has at most nine. */
const rowsAtOnce = 500;

/** Marks an hour that is to be added up, in place of a node. */
const planned = "planned";

const sumColumns = ["decided", "allowed", "denied", "cost", "degraded", "shadow_denied"] as const;

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

export function createUsageNote(
  session: Session,
): Pick<StoreNote, "addUsage" | "planUsage" | "rollUpUsage" | "deleteOldestUsage" | "deleteUnusedUsageSeries"> {
  const { database, tables, all, run } = session;

  /** Whether this flush is the next one of its boot. In one transaction with its sums, so both are added or neither. */
  async function isNew(node: string, boot: string, sequence: number): Promise<boolean> {
    const rows = await all(
      tables
        .insertInto("sluice_usage_flushes")
        .values({ node, boot, sequence, at_ms: database.nowMs() })
        .onConflict((conflict) =>
          conflict
            .columns(["node", "boot"])
            .doUpdateSet((set) => ({ sequence: set.ref("excluded.sequence"), at_ms: set.ref("excluded.at_ms") }))
            .where((is) => is("sluice_usage_flushes.sequence", "<", is.ref("excluded.sequence"))),
        )
        .returning("sequence"),
    );
    return rows.length > 0;
  }

  /** Writes only those that are new, or were not used on this day: a row that stays as it is would be locked, and logged. */
  async function putSeries(sums: readonly IdentifiedSum[]): Promise<void> {
    const rows = new Map(sums.map(({ id, sum }) => [id, seriesRow(id, sum)]));
    for (const part of inParts([...rows.values()])) {
      const ids = part.map(({ id }) => id);
      const known = await all(tables.selectFrom("sluice_usage_series").select(["id", "seen_s"]).where("id", "in", ids));
      const seen = new Map(known.map(({ id, seen_s }) => [id, seen_s]));
      const changed = part.filter(({ id, seen_s }) => (seen.get(id) ?? -1) < seen_s);
      if (changed.length === 0) continue;
      await run(
        tables
          .insertInto("sluice_usage_series")
          .values(changed)
          .onConflict((conflict) =>
            conflict
              .column("id")
              .doUpdateSet((set) => ({ seen_s: set.ref("excluded.seen_s") }))
              .where((is) => is("sluice_usage_series.seen_s", "<", is.ref("excluded.seen_s"))),
          ),
      );
    }
  }

  async function addSums(sums: readonly IdentifiedSum[]): Promise<void> {
    const rows = sums.map(({ id, sum }) => ({
      series: id,
      step_s: 60,
      start_s: sum.startMs / 1_000,
      ...rowFromCounts(sum),
    }));
    for (const part of inParts(rows))
      await run(
        tables
          .insertInto("sluice_usage")
          .values(part)
          .onConflict((conflict) =>
            conflict
              .columns(["series", "step_s", "start_s"])
              .doUpdateSet((set) =>
                Object.fromEntries(
                  sumColumns.map((column) => [
                    column,
                    set(`sluice_usage.${column}`, "+", set.ref(`excluded.${column}`)),
                  ]),
                ),
              ),
          ),
      );
  }

  async function addDenials(sums: readonly IdentifiedSum[]): Promise<void> {
    const rows = sums.flatMap(({ id, sum }) =>
      mergeDenials(sum.denials).map(({ reason, window, denied }) => ({
        ...{ series: id, step_s: 60, start_s: sum.startMs / 1_000 },
        ...{ reason, window_name: window, denied },
      })),
    );
    for (const part of inParts(rows))
      await run(
        tables
          .insertInto("sluice_usage_denials")
          .values(part)
          .onConflict((conflict) =>
            conflict
              .columns(["series", "step_s", "start_s", "reason", "window_name"])
              .doUpdateSet((set) => ({ denied: set("sluice_usage_denials.denied", "+", set.ref("excluded.denied")) })),
          ),
      );
  }

  /** Locks the mark until the sums are committed, so that a plan waits for them, or leaves the mark for the next one. */
  async function markHours(node: string, sums: readonly IdentifiedSum[]): Promise<void> {
    const hours = new Set(sums.map(({ sum }) => findPeriodStart("hour", sum.startMs / 1_000)));
    await run(
      tables
        .insertInto("sluice_usage_marks")
        .values([...hours].sort((a, b) => a - b).map((hour_s) => ({ hour_s, node: `node:${node}` })))
        .onConflict((conflict) =>
          conflict.columns(["hour_s", "node"]).doUpdateSet((set) => ({ node: set.ref("excluded.node") })),
        ),
    );
  }

  /** Sums of the shorter periods within a longer one, in place of what was there. */
  async function addUp(from: UsageStep, to: UsageStep, start: number): Promise<void> {
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
            .doUpdateSet((set) =>
              Object.fromEntries(sumColumns.map((column) => [column, set.ref(`excluded.${column}`)])),
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
            .select([
              "series",
              constant(within.to).as("step_s"),
              constant(start).as("start_s"),
              "reason",
              "window_name",
            ])
            .select(total("denied").as("denied"))
            .groupBy(["series", "reason", "window_name"]),
        )
        .onConflict((conflict) =>
          conflict
            .columns(["series", "step_s", "start_s", "reason", "window_name"])
            .doUpdateSet((set) => ({ denied: set.ref("excluded.denied") })),
        ),
    );
  }

  return {
    async addUsage({ node, boot, sequence, sums }) {
      if (!(await isNew(node, boot, sequence))) return false;
      if (sums.length === 0) return true;
      const identified = identify(sums);
      await putSeries(identified);
      await addSums(identified);
      await addDenials(identified);
      await markHours(node, identified);
      return true;
    },

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
      await addUp("minute", "hour", mark.hour_s);
      await addUp("hour", "day", findPeriodStart("day", mark.hour_s));
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

interface IdentifiedSum {
  readonly id: number;
  readonly sum: UsageSum;
}

/**
 * Sums with their series, in one order for all nodes, so that two flushes never wait for each other. A statement writes a row
 * once, so sums of one series and minute become one: callers choose subjects, and can find two whose series have one number.
 */
function identify(sums: readonly UsageSum[]): readonly IdentifiedSum[] {
  const sorted = sums
    .map((sum) => ({ id: seriesId(sum), sum: replaceUnstorable(sum) }))
    .sort((a, b) => a.id - b.id || a.sum.startMs - b.sum.startMs);
  const merged: IdentifiedSum[] = [];
  for (const one of sorted) {
    const last = merged.at(-1);
    if (last?.id === one.id && last.sum.startMs === one.sum.startMs)
      merged[merged.length - 1] = { id: one.id, sum: mergeSums(last.sum, one.sum) };
    else merged.push(one);
  }
  return merged;
}

function mergeSums(one: UsageSum, other: UsageSum): UsageSum {
  return {
    ...one,
    decided: one.decided + other.decided,
    allowed: one.allowed + other.allowed,
    denied: one.denied + other.denied,
    cost: one.cost + other.cost,
    degraded: one.degraded + other.degraded,
    shadowDenied: one.shadowDenied + other.shadowDenied,
    denials: [...one.denials, ...other.denials],
  };
}

/** One of each reason and window, as they are stored. */
function mergeDenials(denials: UsageSum["denials"]): UsageSum["denials"] {
  const merged = new Map<string, UsageSum["denials"][number]>();
  for (const one of denials.map(replaceUnstorable)) {
    const key = JSON.stringify([one.reason, one.window]);
    merged.set(key, { ...one, denied: (merged.get(key)?.denied ?? 0) + one.denied });
  }
  return [...merged.values()];
}

type Row = Readonly<Record<string, unknown>>;

interface DenialsRow {
  readonly reason: string;
  readonly window_name: string;
  readonly sum_denied: number;
}

/**
 * The number of a series: 53 bits of a digest, so that a node needs no answer of the store to know it. Of a million series two
 * share a number once in twenty thousand stores.
 */
function seriesId({ policy, limit, dimension, subject }: UsageSeries): number {
  const digest = createHash("sha256")
    .update(JSON.stringify([policy, limit, dimension, subject]))
    .digest();
  return digest.readUInt32BE(0) * 2 ** 21 + (digest.readUInt32BE(4) >>> 11);
}

function seriesRow(id: number, { policy, limit, dimension, subject, startMs }: UsageSum) {
  const seen = findPeriodStart("day", startMs / 1_000);
  return { id, policy, limit_name: limit, dimension, subject, subject_key: textKey(subject), seen_s: seen };
}

function findPeriodStart(step: UsageStep, second: number): number {
  return second - (second % stepSeconds[step]);
}

/** A sum as a whole number: PostgreSQL would answer with a decimal one. */
function total(column: string): ReturnType<typeof sql<number>> {
  return sql<number>`cast(sum(${sql.ref(column)}) as bigint)`;
}

function constant(value: number): ReturnType<typeof sql<number>> {
  return sql<number>`cast(${value} as bigint)`;
}

function* inParts<Row>(rows: readonly Row[]): Generator<readonly Row[]> {
  for (let start = 0; start < rows.length; start += rowsAtOnce) yield rows.slice(start, start + rowsAtOnce);
}

function rowFromCounts({ decided, allowed, denied, cost, degraded, shadowDenied }: UsageCounts) {
  return { decided, allowed, denied, cost, degraded, shadow_denied: shadowDenied };
}

function countsFromRow(row: Row): UsageCounts {
  const [decided, allowed, denied, cost, degraded, shadowDenied] = sumColumns.map((column) => row[`sum_${column}`]);
  return { decided, allowed, denied, cost, degraded, shadowDenied } as unknown as UsageCounts;
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
