import type { StoreChange, StoreView } from "../policy-store.ts";
import { blocks, disabled } from "../tables.ts";
import { textKey } from "../text-key.ts";
import type { Session } from "../transact.ts";
import { putRecords } from "./write-records.ts";

export function createExceptionView({ tables, all }: Session): Pick<StoreView, "disabled" | "blocks"> {
  return {
    async disabled() {
      return (await all(tables.selectFrom("sluice_disabled").select(disabled.columns).orderBy("policy"))).map(
        disabled.recordFromRow,
      );
    },

    async blocks(dimension, value) {
      let query = tables.selectFrom("sluice_blocks").select(blocks.columns);
      if (dimension !== undefined) query = query.where("dimension", "=", dimension);
      if (value !== undefined) query = query.where("value_key", "=", textKey(value));
      return (await all(query.orderBy("dimension").orderBy("value_key"))).map(blocks.recordFromRow);
    },
  };
}

type ExceptionChange = Pick<
  StoreChange,
  "putDisabled" | "deleteDisabled" | "putBlock" | "deleteBlock" | "deleteEndedExceptions"
>;

export function createExceptionChange(session: Session): ExceptionChange {
  const { tables, run } = session;
  return {
    putDisabled: (record) => putRecords(session, disabled, record),

    async deleteDisabled(policy) {
      return (await run(tables.deleteFrom("sluice_disabled").where("policy", "=", policy))) > 0;
    },

    putBlock: (records) => putRecords(session, blocks, records),

    async deleteBlock(dimension, value) {
      const named = tables.deleteFrom("sluice_blocks").where("dimension", "=", dimension);
      return (await run(named.where("value_key", "=", textKey(value)))) > 0;
    },

    async deleteEndedExceptions(endedBeforeMs) {
      const policies = await run(tables.deleteFrom("sluice_disabled").where("until_ms", "<", endedBeforeMs));
      return policies + (await run(tables.deleteFrom("sluice_blocks").where("until_ms", "<", endedBeforeMs)));
    },
  };
}
