import { type Expression, type ExpressionBuilder, type SqlBool, sql } from "kysely";
import type { KnownSubjectQuery, KnownSubjectRow, StoreView } from "../policy-store.ts";
import { textKey } from "../text-key.ts";
import type { Session } from "../transact.ts";
import { isOwned } from "./is-owned.ts";
import { parseLimit } from "./parse-limit.ts";

/** No text of ours sorts behind this one. */
const lastText = "\u{10ffff}";

/** Which subjects there are: those with usage, those with a tier or limits of their own, and those that were denied. */
export function createKnownSubjectsView(session: Session): Pick<StoreView, "knownSubjects"> {
  return {
    async knownSubjects(query) {
      const used = await findUsed(session, query);
      const configured = await findConfigured(session, query);
      // Denials of other teams' policies are not an editor's business.
      const denied = query.owned === undefined ? await findDenied(session, query) : [];
      return [...used, ...configured, ...denied];
    },
  };
}

async function findUsed({ tables, all }: Session, query: KnownSubjectQuery): Promise<readonly KnownSubjectRow[]> {
  const { owned, atMost } = query;
  let series = tables
    .selectFrom("sluice_usage_series")
    .where("dimension", "<>", "")
    .where("subject", "<>", "(other)")
    .where((is) => matches(is, "subject_key", query));
  if (owned !== undefined) series = series.where((is) => isOwned(is, "policy", owned));
  const rows = await all(
    series
      .select(["dimension", "subject as value", sql<number>`cast(max(seen_s) as bigint)`.as("seen")])
      .groupBy(["dimension", "subject_key", "subject"])
      .orderBy("dimension")
      .orderBy("subject_key")
      .limit(parseLimit(atMost)),
  );
  return rows.map(({ dimension, value, seen }) => ({ dimension, value, by: "usage", seenMs: seen * 1_000 }));
}

async function findConfigured({ tables, all }: Session, query: KnownSubjectQuery): Promise<readonly KnownSubjectRow[]> {
  const rows = await all(
    tables
      .selectFrom("sluice_subjects")
      .where((is) => matches(is, "value_key", query))
      .select(["dimension", "subject as value"])
      .orderBy("dimension")
      .orderBy("value_key")
      .limit(parseLimit(query.atMost)),
  );
  return rows.map((row) => ({ ...row, by: "configured", seenMs: undefined }));
}

async function findDenied({ tables, all }: Session, query: KnownSubjectQuery): Promise<readonly KnownSubjectRow[]> {
  const rows = await all(
    tables
      .selectFrom("sluice_denial_subjects")
      .where((is) => matches(is, "subject_key", query))
      .select(["dimension", "subject_key as value", sql<number>`cast(max(at_ms) as bigint)`.as("seen")])
      .groupBy(["dimension", "subject_key"])
      .orderBy("dimension")
      .orderBy("subject_key")
      .limit(parseLimit(query.atMost)),
  );
  return rows.map(({ seen, ...row }) => ({ ...row, by: "denials", seenMs: seen }));
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
