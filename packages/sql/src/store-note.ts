import type { StoreNote } from "./policy-store.ts";
import type { TallyRecord } from "./records.ts";
import { rowFromAudit, rowFromNode, rowFromTally } from "./rows.ts";
import { createStoreView } from "./store-view.ts";
import type { Session } from "./transact.ts";

/** SQLite takes 32 766 parameters in one statement, and a tally has seven. */
const talliesAtOnce = 1_000;

/** What can be written beside changes. */
export function createStoreNote(session: Session): StoreNote {
  const { tables, run } = session;
  return {
    ...createStoreView(session),

    async addAudit(record) {
      await run(
        tables
          .insertInto("sluice_audit")
          .values(rowFromAudit(record))
          .onConflict((conflict) => conflict.column("id").doNothing()),
      );
    },

    sweepAudit: (beforeMs) => run(tables.deleteFrom("sluice_audit").where("at_ms", "<", beforeMs)),

    async putNode(record) {
      const { id, ...rest } = rowFromNode(record);
      await run(
        tables
          .insertInto("sluice_nodes")
          .values({ id, ...rest })
          .onConflict((conflict) => conflict.column("id").doUpdateSet(rest)),
      );
    },

    async deleteNode(id) {
      await run(tables.deleteFrom("sluice_nodes").where("id", "=", id));
    },

    sweepNodes: (seenBeforeMs) => run(tables.deleteFrom("sluice_nodes").where("seen_ms", "<", seenBeforeMs)),

    async putTallies(records) {
      const rows = lastOfEach(records).map(rowFromTally);
      for (let start = 0; start < rows.length; start += talliesAtOnce) {
        await run(
          tables
            .insertInto("sluice_tallies")
            .values(rows.slice(start, start + talliesAtOnce))
            .onConflict((conflict) =>
              conflict.columns(["rollout", "minute", "node", "step", "side"]).doUpdateSet((set) => ({
                decided: set.ref("excluded.decided"),
                denied: set.ref("excluded.denied"),
              })),
            ),
        );
      }
    },

    sweepTallies: (beforeMinute) => run(tables.deleteFrom("sluice_tallies").where("minute", "<", beforeMinute)),

    async touchToken(id, usedMs) {
      await run(
        tables
          .updateTable("sluice_tokens")
          .set({ last_used_ms: usedMs })
          .where("id", "=", id)
          .where((is) => is.or([is("last_used_ms", "is", null), is("last_used_ms", "<", usedMs)])),
      );
    },
  };
}

/** PostgreSQL refuses to write a row twice in one statement. What is said last holds. */
function lastOfEach(records: readonly TallyRecord[]): readonly TallyRecord[] {
  const byKey = new Map(
    records.map((record) => [
      JSON.stringify([record.rollout, record.minute, record.node, record.step, record.side]),
      record,
    ]),
  );
  return [...byKey.values()];
}
