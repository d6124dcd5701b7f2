import { sql } from "kysely";
import { generationChannel } from "../generation-channel.ts";
import type { StoreChange, StoreView } from "../policy-store.ts";
import { killSwitch } from "../tables.ts";
import type { Session } from "../transact.ts";

export function createPulseView({ database, tables, all }: Session): Pick<StoreView, "pulse" | "nowMs"> {
  return {
    async pulse() {
      const query = tables.selectFrom("sluice_pulse").select(["generation", ...killSwitch.columns]);
      const [row] = await all(query.where("id", "=", 1));
      if (row === undefined) return { generation: 0, killSwitch: undefined };
      const { generation, ...columns } = row;
      return { generation, killSwitch: hasNoNull(columns) ? killSwitch.recordFromRow(columns) : undefined };
    },

    async nowMs() {
      const [row] = await all(tables.selectNoFrom(sql<number>`${database.nowMs()}`.as("now_ms")));
      return Number(row?.now_ms);
    },
  };
}

const killSwitchOff = Object.fromEntries(killSwitch.columns.map((column) => [column, null])) as {
  readonly [Column in (typeof killSwitch.columns)[number]]: null;
};

export function createPulseChange(session: Session): Pick<StoreChange, "nextGeneration" | "putKillSwitch"> {
  const { tables, run } = session;
  let generation: Promise<number> | undefined;
  return {
    nextGeneration() {
      generation ??= raiseGeneration(session);
      return generation;
    },

    async putKillSwitch(record) {
      const columns = record === undefined ? killSwitchOff : killSwitch.rowFromRecord(record);
      await run(tables.updateTable("sluice_pulse").set(columns).where("id", "=", 1));
    },
  };
}

async function raiseGeneration(session: Session): Promise<number> {
  const { database, tables, all, run } = session;
  await run(
    tables
      .updateTable("sluice_pulse")
      .set((set) => ({ generation: set("generation", "+", sql.lit(1)) }))
      .where("id", "=", 1),
  );
  const { generation } = await createPulseView(session).pulse();
  // PostgreSQL sends it when the change is committed, and not at all if it is undone.
  if (database.notifies)
    await all(tables.selectNoFrom(sql`pg_notify(${generationChannel}, ${String(generation)})`.as("notified")));
  return generation;
}

function hasNoNull<Columns extends object>(
  columns: Columns,
): columns is { [Column in keyof Columns]: NonNullable<Columns[Column]> } {
  return !Object.values(columns).includes(null);
}
