import type { AuditQuery, StoreNote, StoreView } from "../policy-store.ts";
import { replaceUnstorable } from "../storable.ts";
import { audit } from "../tables.ts";
import { textKey } from "../text-key.ts";
import type { Session } from "../transact.ts";
import { parseLimit } from "./parse-limit.ts";
import { rowsInParts } from "./write-records.ts";

export function createAuditView({ tables, all }: Session): Pick<StoreView, "audit"> {
  return {
    async audit({ after, limit, kind, target, actor, action, outcome, sinceMs, untilMs }: AuditQuery = {}) {
      let query = tables.selectFrom("sluice_audit").select(audit.columns).orderBy("id", "desc");
      if (after !== undefined) query = query.where("id", "<", after);
      if (kind !== undefined) query = query.where("kind", "=", kind);
      if (target !== undefined) query = query.where("target_key", "=", textKey(target));
      if (actor !== undefined) query = query.where("actor_key", "=", textKey(actor));
      if (action !== undefined) query = query.where("action", "=", action);
      if (outcome !== undefined) query = query.where("outcome", "=", outcome);
      if (sinceMs !== undefined) query = query.where("at_ms", ">=", sinceMs);
      if (untilMs !== undefined) query = query.where("at_ms", "<", untilMs);
      if (limit !== undefined) query = query.limit(parseLimit(limit));
      return (await all(query)).map(audit.recordFromRow);
    },
  };
}

export function createAuditNote({ tables, run }: Session): Pick<StoreNote, "addAudit" | "deleteAuditBefore"> {
  return {
    async addAudit(records) {
      const storable = [records].flat().map(replaceUnstorable);
      for (const rows of rowsInParts(audit, storable)) {
        const insert = tables.insertInto("sluice_audit").values(rows);
        await run(insert.onConflict((conflict) => conflict.columns(audit.key).doNothing()));
      }
    },

    deleteAuditBefore: (beforeMs, limit) => {
      const older = tables.selectFrom("sluice_audit").select("id").where("at_ms", "<", beforeMs).limit(limit);
      return run(tables.deleteFrom("sluice_audit").where("id", "in", older));
    },
  };
}
