import { sql } from "kysely";
import { RuleTaken, TokenNameTaken, VersionTaken } from "./errors.ts";
import { generationChannel } from "./generation-channel.ts";
import { inParts } from "./in-parts.ts";
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
import type { PolicyRow } from "./tables.ts";
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
        .set((set) => ({ generation: set("generation", "+", sql.lit(1)) }))
        .where("id", "=", 1),
    );
    const raised = (await note.pulse()).generation;
    // Told when the change is done, and not at all if it is undone.
    if (database.notifies)
      await all(tables.selectNoFrom(sql`pg_notify(${generationChannel}, ${String(raised)})`.as("told")));
    return raised;
  }

  async function demandFreeRules(rows: readonly PolicyRow[]): Promise<void> {
    const wanted = new Map<string, string>();
    for (const { id, rule_key, deleted } of rows) {
      if (rule_key === null || deleted === 1) continue;
      const other = wanted.get(rule_key);
      if (other !== undefined) throw new RuleTaken(other);
      wanted.set(rule_key, id);
    }
    if (wanted.size === 0) return;
    const holders = await all(
      tables
        .selectFrom("sluice_policies")
        .select(["id", "rule_key"])
        .where("rule_key", "in", [...wanted.keys()])
        .where("deleted", "=", 0),
    );
    for (const { id, rule_key } of holders) if (wanted.get(rule_key ?? "") !== id) throw new RuleTaken(id);
  }

  return {
    ...note,

    nextGeneration() {
      generation ??= raiseGeneration();
      return generation;
    },

    async putPolicy(records) {
      for (const rows of inParts(records, rowFromPolicy, ["id"])) {
        await demandFreeRules(rows);
        await run(
          tables
            .insertInto("sluice_policies")
            .values(rows)
            .onConflict((conflict) =>
              conflict.column("id").doUpdateSet((set) => ({
                version: set.ref("excluded.version"),
                document: set.ref("excluded.document"),
                owner: set.ref("excluded.owner"),
                rule: set.ref("excluded.rule"),
                rule_key: set.ref("excluded.rule_key"),
                deleted: set.ref("excluded.deleted"),
                changed_ms: set.ref("excluded.changed_ms"),
              })),
            ),
        );
      }
    },

    async addVersion(records) {
      for (const rows of inParts(records, rowFromVersion, ["policy", "version"])) {
        const added = await all(
          tables
            .insertInto("sluice_versions")
            .values(rows)
            .onConflict((conflict) => conflict.columns(["policy", "version"]).doNothing())
            .returning(["policy", "version"]),
        );
        const keys = new Set(added.map(({ policy, version }) => `${version} ${policy}`));
        const taken = rows.find(({ policy, version }) => !keys.has(`${version} ${policy}`));
        if (taken !== undefined)
          throw new VersionTaken(`policy ${taken.policy} has a version ${taken.version} already`);
      }
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

    async putSubject(records) {
      for (const rows of inParts(records, rowFromSubject, ["dimension", "value_key"])) {
        await run(
          tables
            .insertInto("sluice_subjects")
            .values(rows)
            .onConflict((conflict) =>
              conflict.columns(["dimension", "value_key"]).doUpdateSet((set) => ({
                tier: set.ref("excluded.tier"),
                version: set.ref("excluded.version"),
                changed_ms: set.ref("excluded.changed_ms"),
              })),
            ),
        );
      }
    },

    async deleteSubject(dimension, value) {
      for (const table of ["sluice_subjects", "sluice_subject_limits"] as const)
        await run(tables.deleteFrom(table).where("dimension", "=", dimension).where("value_key", "=", textKey(value)));
    },

    async putSubjectLimit(records) {
      const key = ["dimension", "value_key", "policy", "limit_name", "temporary"] as const;
      for (const rows of inParts(records, rowFromSubjectLimit, key)) {
        await run(
          tables
            .insertInto("sluice_subject_limits")
            .values(rows)
            .onConflict((conflict) =>
              conflict.columns(key).doUpdateSet((set) => ({
                windows: set.ref("excluded.windows"),
                until_ms: set.ref("excluded.until_ms"),
                reason: set.ref("excluded.reason"),
                author: set.ref("excluded.author"),
                at_ms: set.ref("excluded.at_ms"),
              })),
            ),
        );
      }
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
