import { sql } from "kysely";
import { TokenNameTaken } from "../errors.ts";
import type { StoreChange, StoreNote, StoreView } from "../policy-store.ts";
import { tokens } from "../tables.ts";
import type { Session } from "../transact.ts";
import { putRecords } from "./write-records.ts";

export function createTokenView({ tables, all }: Session): Pick<StoreView, "tokens" | "token"> {
  const selectTokens = tables.selectFrom("sluice_tokens").select(tokens.columns);
  return {
    async tokens() {
      return (await all(selectTokens.orderBy("id"))).map(tokens.recordFromRow);
    },

    async token(id) {
      return (await all(selectTokens.where("id", "=", id))).map(tokens.recordFromRow)[0];
    },
  };
}

export function createTokenNote({ tables, run }: Session): Pick<StoreNote, "touchToken"> {
  return {
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

export function createTokenChange(session: Session): Pick<StoreChange, "putToken" | "deleteEndedTokens"> {
  const { tables, all, run } = session;
  return {
    // Not by "like", which takes no notice of case in SQLite.
    deleteEndedTokens: (namePrefix, endedBeforeMs) =>
      run(
        tables
          .deleteFrom("sluice_tokens")
          .where(sql`substr(name, 1, ${namePrefix.length})`, "=", namePrefix)
          .where((is) => is.or([is("expires_ms", "<", endedBeforeMs), is("revoked_ms", "<", endedBeforeMs)])),
      ),

    async putToken(record) {
      const { id, name, revoked_ms } = tokens.rowFromRecord(record);
      if (revoked_ms === null) {
        const namesake = tables.selectFrom("sluice_tokens").select("id").where("name", "=", name);
        const [holder] = await all(namesake.where("revoked_ms", "is", null).where("id", "<>", id));
        if (holder !== undefined) throw new TokenNameTaken(`a token that is in use is named ${name}`);
      }
      await putRecords(session, tokens, record);
    },
  };
}
