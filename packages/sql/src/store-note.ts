import { inParts } from "./in-parts.ts";
import type { StoreNote } from "./policy-store.ts";
import { rowFromAudit, rowFromNode, rowFromTally } from "./rows.ts";
import { createStoreView } from "./store-view.ts";
import type { Session } from "./transact.ts";

/** What can be written beside changes. */
export function createStoreNote(session: Session): StoreNote {
  const { tables, run } = session;
  return {
    ...createStoreView(session),

    async addAudit(records) {
      for (const rows of inParts(records, rowFromAudit, ["id"])) {
        await run(
          tables
            .insertInto("sluice_audit")
            .values(rows)
            .onConflict((conflict) => conflict.column("id").doNothing()),
        );
      }
    },

    sweepAudit: (beforeMs, limit) => {
      const older = tables.selectFrom("sluice_audit").select("id").where("at_ms", "<", beforeMs).limit(limit);
      return run(tables.deleteFrom("sluice_audit").where("id", "in", older));
    },

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
      for (const rows of inParts(records, rowFromTally, ["rollout", "minute", "node", "step", "side"])) {
        await run(
          tables
            .insertInto("sluice_tallies")
            .values(rows)
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
