import { createHash } from "node:crypto";
import type { StoreNote } from "../policy-store.ts";
import type { UsageFlush, UsageSeries, UsageSum } from "../records.ts";
import { replaceUnstorable } from "../storable.ts";
import { textKey } from "../text-key.ts";
import type { Session } from "../transact.ts";
import { columnsFromCounts, findPeriodStart, sumColumns } from "./usage-sums.ts";

/** Rows in one statement: SQLite takes 32 766 parameters, and a row has at most nine. */
const rowsAtOnce = 500;

export function createUsageNote(session: Session): Pick<StoreNote, "addUsage"> {
  return {
    async addUsage(flush) {
      if (!(await isNextFlush(session, flush))) return false;
      if (flush.sums.length === 0) return true;
      const sums = identify(flush.sums);
      await putSeries(session, sums);
      await addSums(session, sums);
      await addDenials(session, sums);
      await markHours(session, flush.node, sums);
      return true;
    },
  };
}

/** Whether this flush is the next one of its boot. In one transaction with its sums, so both are added or neither. */
async function isNextFlush({ database, tables, all }: Session, { node, boot, sequence }: UsageFlush): Promise<boolean> {
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
async function putSeries({ tables, all, run }: Session, sums: readonly IdentifiedSum[]): Promise<void> {
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

async function addSums({ tables, run }: Session, sums: readonly IdentifiedSum[]): Promise<void> {
  const rows = sums.map(({ id, sum }) => ({
    series: id,
    step_s: 60,
    start_s: sum.startMs / 1_000,
    ...columnsFromCounts(sum),
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
                sumColumns.map((column) => [column, set(`sluice_usage.${column}`, "+", set.ref(`excluded.${column}`))]),
              ),
            ),
        ),
    );
}

async function addDenials({ tables, run }: Session, sums: readonly IdentifiedSum[]): Promise<void> {
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
async function markHours({ tables, run }: Session, node: string, sums: readonly IdentifiedSum[]): Promise<void> {
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

function* inParts<Row>(rows: readonly Row[]): Generator<readonly Row[]> {
  for (let start = 0; start < rows.length; start += rowsAtOnce) yield rows.slice(start, start + rowsAtOnce);
}
