import { sql } from "kysely";
import { RuleTaken, TokenNameTaken, VersionTaken } from "./errors.ts";
import { generationChannel } from "./generation-channel.ts";
import type { StoreChange } from "./policy-store.ts";
import {
  rowFromKillSwitch,
  rowFromPolicy,
  rowFromRollout,
  rowFromSubject,
  rowFromSubjectLimit,
  rowFromToken,
  rowFromVersion,
  temporaryOf,
} from "./rows.ts";
import { createStoreNote } from "./store-note.ts";
import { textKey } from "./text-key.ts";
import type { Session } from "./transact.ts";

/**
 * What can be written in a change. It is alone among changes, so whether a name is taken is asked before: a statement that
 * failed would have undone everything that came before it. Indexes forbid the same, for whoever writes by other means.
 */
export function createStoreChange(session: Session): StoreChange {
  const { database, tables, all, run } = session;
  const note = createStoreNote(session);
  let generation: Promise<number> | undefined;

  async function raiseGeneration(): Promise<number> {
    await run(
      tables
        .updateTable("sluice_pulse")
        .set((set) => ({ generation: set("generation", "+", 1) }))
        .where("id", "=", 1),
    );
    const raised = (await note.pulse()).generation;
    // Told when the change is done, and not at all if it is undone.
    if (database.notifies)
      await all(tables.selectNoFrom(sql`pg_notify(${generationChannel}, ${String(raised)})`.as("told")));
    return raised;
  }

  return {
    ...note,

    nextGeneration() {
      generation ??= raiseGeneration();
      return generation;
    },

    async putPolicy(record) {
      const { id, ...rest } = rowFromPolicy(record);
      if (record.ruleKey !== undefined && !record.deleted) {
        const holder = await note.findPolicyByRule(record.ruleKey);
        if (holder !== undefined && holder.id !== id) throw new RuleTaken(holder.id);
      }
      await run(
        tables
          .insertInto("sluice_policies")
          .values({ id, ...rest })
          .onConflict((conflict) => conflict.column("id").doUpdateSet(rest)),
      );
    },

    async addVersion(record) {
      const added = await run(
        tables
          .insertInto("sluice_versions")
          .values(rowFromVersion(record))
          .onConflict((conflict) => conflict.columns(["policy", "version"]).doNothing()),
      );
      if (added === 0) throw new VersionTaken(`policy ${record.policy} has a version ${record.version} already`);
    },

    async putRollout(record) {
      const { id, ...rest } = rowFromRollout(record);
      await run(
        tables
          .insertInto("sluice_rollouts")
          .values({ id, ...rest })
          .onConflict((conflict) => conflict.column("id").doUpdateSet(rest)),
      );
    },

    async putSubject(record) {
      const row = rowFromSubject(record);
      const { tier, version, changed_ms } = row;
      await run(
        tables
          .insertInto("sluice_subjects")
          .values(row)
          .onConflict((conflict) =>
            conflict.columns(["dimension", "value_key"]).doUpdateSet({ tier, version, changed_ms }),
          ),
      );
    },

    async deleteSubject(dimension, value) {
      for (const table of ["sluice_subjects", "sluice_subject_limits"] as const)
        await run(tables.deleteFrom(table).where("dimension", "=", dimension).where("value_key", "=", textKey(value)));
    },

    async putSubjectLimit(record) {
      const row = rowFromSubjectLimit(record);
      const { windows, until_ms, reason, author, at_ms } = row;
      await run(
        tables
          .insertInto("sluice_subject_limits")
          .values(row)
          .onConflict((conflict) =>
            conflict
              .columns(["dimension", "value_key", "policy", "limit_name", "temporary"])
              .doUpdateSet({ windows, until_ms, reason, author, at_ms }),
          ),
      );
    },

    async deleteSubjectLimit(dimension, value, policy, limit, kind) {
      const deleted = await run(
        tables
          .deleteFrom("sluice_subject_limits")
          .where("dimension", "=", dimension)
          .where("value_key", "=", textKey(value))
          .where("policy", "=", policy)
          .where("limit_name", "=", limit)
          .where("temporary", "=", temporaryOf(kind === "override")),
      );
      return deleted > 0;
    },

    sweepSubjectLimits: (endedBeforeMs) =>
      run(tables.deleteFrom("sluice_subject_limits").where("until_ms", "<", endedBeforeMs)),

    async putKillSwitch(record) {
      await run(tables.updateTable("sluice_pulse").set(rowFromKillSwitch(record)).where("id", "=", 1));
    },

    async putToken(record) {
      const { id, ...rest } = rowFromToken(record);
      if (record.revokedMs === undefined) {
        const [holder] = await all(
          tables
            .selectFrom("sluice_tokens")
            .select("id")
            .where("name", "=", record.name)
            .where("revoked_ms", "is", null)
            .where("id", "<>", id),
        );
        if (holder !== undefined) throw new TokenNameTaken(`a token that is in use is named ${record.name}`);
      }
      await run(
        tables
          .insertInto("sluice_tokens")
          .values({ id, ...rest })
          .onConflict((conflict) => conflict.column("id").doUpdateSet(rest)),
      );
    },
  };
}
