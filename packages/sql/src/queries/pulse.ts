import { sql } from "kysely";
import { generationChannel } from "../generation-channel.ts";
import type { StoreChange, StoreView } from "../policy-store.ts";
import type { KillSwitchRecord } from "../records.ts";
import { killSwitch, type Tables } from "../tables.ts";
import type { Session } from "../transact.ts";

export function createPulseView({ database, tables, all }: Session): Pick<StoreView, "pulse" | "nowMs"> {
  return {
    async pulse() {
      const query = tables.selectFrom("sluice_pulse").select(["generation", ...killSwitch.columns]);
      const [row] = await all(query.where("id", "=", 1));
      if (row === undefined) return { generation: 0, killSwitch: undefined };
      return { generation: row.generation, killSwitch: findKillSwitch(row) };
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

/** An operator who sets it with SQL may leave out everything but the mode and the end. */
function findKillSwitch(row: Omit<Tables["sluice_pulse"], "id">): KillSwitchRecord | undefined {
  const { kill_mode, kill_since_ms, kill_until_ms, kill_reason, kill_author } = row;
  if (kill_mode === null) return undefined;
  return killSwitch.recordFromRow({
    kill_mode,
    kill_since_ms: kill_since_ms ?? 0,
    kill_until_ms: kill_until_ms ?? 0,
    kill_reason: kill_reason ?? "",
    kill_author: kill_author ?? "",
  });
}
