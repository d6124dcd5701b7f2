import type { StoreNote, StoreView } from "../policy-store.ts";
import { nodes } from "../tables.ts";
import type { Session } from "../transact.ts";
import { putRecords } from "./write-records.ts";

export function createNodeView({ tables, all }: Session): Pick<StoreView, "nodes"> {
  return {
    async nodes() {
      return (await all(tables.selectFrom("sluice_nodes").select(nodes.columns).orderBy("id"))).map(
        nodes.recordFromRow,
      );
    },
  };
}

export function createNodeNote(session: Session): Pick<StoreNote, "putNode" | "deleteNode" | "deleteNodesSeenBefore"> {
  const { tables, run } = session;
  return {
    putNode: (record) => putRecords(session, nodes, record),

    async deleteNode(id) {
      await run(tables.deleteFrom("sluice_nodes").where("id", "=", id));
    },

    deleteNodesSeenBefore: (seenBeforeMs) => run(tables.deleteFrom("sluice_nodes").where("seen_ms", "<", seenBeforeMs)),
  };
}
