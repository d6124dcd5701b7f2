import { sql } from "kysely";
import type { DenialCount, DenialQuery, StoreNote, StoreView } from "../policy-store.ts";
import { replaceUnstorable } from "../storable.ts";
import { denials } from "../tables.ts";
import { textKey } from "../text-key.ts";
import type { Session } from "../transact.ts";
import { isOwned } from "./is-owned.ts";
import { parseLimit } from "./parse-limit.ts";
import { rowsInParts } from "./write-records.ts";

/** Rows of subjects in one statement. */
const subjectsAtOnce = 500;

export function createDenialView({ tables, all }: Session): Pick<StoreView, "denials" | "countDenials"> {
  const filtered = ({ fromMs, toMs, policy, limit, found, owned }: Omit<DenialQuery, "after" | "atMost">) => {
    let query = tables.selectFrom("sluice_denials").where("at_ms", ">=", fromMs).where("at_ms", "<", toMs);
    if (policy !== undefined) query = query.where("policy", "=", policy);
    if (limit !== undefined) query = query.where("limit_name", "=", limit);
    if (owned !== undefined) query = query.where((is) => isOwned(is, "policy", owned));
    if (found === undefined) return query;
    const ids = tables
      .selectFrom("sluice_denial_subjects")
      .select("denial")
      .where("dimension", "=", found.dimension)
      .where("subject_key", "=", textKey(found.subject))
      .where("at_ms", ">=", fromMs)
      .where("at_ms", "<", toMs);
    return query.where("id", "in", ids);
  };

  return {
    async denials({ after, atMost, ...query }) {
      let page = filtered(query).select(denials.columns).orderBy("at_ms", "desc").orderBy("id", "desc");
      if (after !== undefined)
        page = page.where((is) =>
          is.or([is("at_ms", "<", after.atMs), is.and([is("at_ms", "=", after.atMs), is("id", "<", after.id)])]),
        );
      return (await all(page.limit(parseLimit(atMost)))).map(denials.recordFromRow);
    },

    async countDenials(query): Promise<DenialCount> {
      const rows = await all(
        filtered(query)
          .select(["mixed", sql<number>`cast(sum(denials) as bigint)`.as("denials")])
          .groupBy("mixed"),
      );
      const sum = (mixed: number): number => rows.find((row) => row.mixed === mixed)?.denials ?? 0;
      return { denials: sum(0) + sum(1), mixed: sum(1) };
    },
  };
}

export function createDenialNote({ tables, all, run }: Session): Pick<StoreNote, "addDenials" | "deleteOldDenials"> {
  return {
    async addDenials(notes) {
      const records = notes.map(({ record }) => replaceUnstorable(record));
      for (const rows of rowsInParts(denials, records)) {
        const insert = tables.insertInto("sluice_denials").values(rows);
        await run(insert.onConflict((conflict) => conflict.columns(denials.key).doNothing()));
      }
      const subjects = notes.flatMap(({ record, foundBy }) =>
        foundBy.map((found) => {
          const { dimension, subject } = replaceUnstorable(found);
          return { dimension, subject_key: textKey(subject), at_ms: record.atMs, denial: record.id };
        }),
      );
      for (let start = 0; start < subjects.length; start += subjectsAtOnce) {
        const insert = tables
          .insertInto("sluice_denial_subjects")
          .values(subjects.slice(start, start + subjectsAtOnce));
        await run(
          insert.onConflict((conflict) =>
            conflict.columns(["dimension", "subject_key", "at_ms", "denial"]).doNothing(),
          ),
        );
      }
    },

    async deleteOldDenials(beforeMs, keep, limit) {
      const newestFirst = tables.selectFrom("sluice_denials").select("at_ms").orderBy("at_ms", "desc");
      const [beyond] = await all(newestFirst.limit(1).offset(parseLimit(keep)));
      const endMs = Math.max(beforeMs, beyond === undefined ? beforeMs : beyond.at_ms + 1);
      const oldest = tables.selectFrom("sluice_denials").select("at_ms").where("at_ms", "<", endMs).orderBy("at_ms");
      const [last] = await all(oldest.limit(1).offset(parseLimit(limit)));
      // Those of one millisecond are deleted together, so that none stays without its subjects.
      const untilMs = last === undefined ? endMs : last.at_ms + 1;
      await run(tables.deleteFrom("sluice_denial_subjects").where("at_ms", "<", untilMs));
      return run(tables.deleteFrom("sluice_denials").where("at_ms", "<", untilMs));
    },
  };
}
