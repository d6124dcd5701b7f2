import { sql } from "kysely";
import type { StoreChange, StoreView } from "../policy-store.ts";
import { subjectLimits, subjects } from "../tables.ts";
import { textKey } from "../text-key.ts";
import type { Session } from "../transact.ts";
import { parseLimit } from "./parse-limit.ts";
import { putRecords } from "./write-records.ts";

type SubjectView = Pick<StoreView, "subjects" | "countTiers" | "subject" | "subjectLimits">;

export function createSubjectView({ tables, all }: Session): SubjectView {
  const selectSubjects = tables.selectFrom("sluice_subjects").select(subjects.columns);

  return {
    async subjects({ after, limit, dimension, tier } = {}) {
      let query = selectSubjects.orderBy("dimension").orderBy("value_key");
      if (dimension !== undefined) query = query.where("dimension", "=", dimension);
      if (tier !== undefined) query = query.where("tier", "=", tier);
      if (after !== undefined) {
        if (dimension === undefined) throw new TypeError("`after` requires `dimension`");
        query = query.where("value_key", ">", textKey(after));
      }
      if (limit !== undefined) query = query.limit(parseLimit(limit));
      return (await all(query)).map(subjects.recordFromRow);
    },

    async countTiers() {
      const query = tables
        .selectFrom("sluice_subjects")
        .select(["tier", "dimension", sql<number>`count(*)`.as("subjects")])
        .where("tier", "is not", null)
        .groupBy(["tier", "dimension"])
        .orderBy("dimension");
      return (await all(query)).map(({ tier, dimension, subjects: count }) => {
        return { tier: tier ?? "", dimension, subjects: Number(count) };
      });
    },

    async subject(dimension, value) {
      const query = selectSubjects.where("dimension", "=", dimension).where("value_key", "=", textKey(value));
      return (await all(query)).map(subjects.recordFromRow)[0];
    },

    async subjectLimits(dimension, value) {
      let query = tables.selectFrom("sluice_subject_limits").select(subjectLimits.columns);
      if (dimension !== undefined) query = query.where("dimension", "=", dimension);
      if (value !== undefined) query = query.where("value_key", "=", textKey(value));
      for (const column of subjectLimits.key) query = query.orderBy(column);
      return (await all(query)).map(subjectLimits.recordFromRow);
    },
  };
}

type SubjectChange = Pick<
  StoreChange,
  "putSubject" | "deleteSubject" | "putSubjectLimit" | "deleteSubjectLimit" | "deleteEndedSubjectLimits"
>;

export function createSubjectChange(session: Session): SubjectChange {
  const { tables, run } = session;
  return {
    putSubject: (records) => putRecords(session, subjects, records),

    async deleteSubject(dimension, value) {
      for (const table of [subjects.name, subjectLimits.name])
        await run(tables.deleteFrom(table).where("dimension", "=", dimension).where("value_key", "=", textKey(value)));
    },

    putSubjectLimit: (records) => putRecords(session, subjectLimits, records),

    async deleteSubjectLimit(dimension, value, policy, limit, kind) {
      const deleted = await run(
        tables
          .deleteFrom("sluice_subject_limits")
          .where("dimension", "=", dimension)
          .where("value_key", "=", textKey(value))
          .where("policy", "=", policy)
          .where("limit_name", "=", limit)
          .where("temporary", "=", kind === "override" ? 1 : 0),
      );
      return deleted > 0;
    },

    deleteEndedSubjectLimits: (endedBeforeMs) =>
      run(tables.deleteFrom("sluice_subject_limits").where("until_ms", "<", endedBeforeMs)),
  };
}
