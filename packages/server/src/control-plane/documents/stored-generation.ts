import { createHash } from "node:crypto";
import type { KillSwitchRecord, StoreView, TokenRecord } from "@sluice/sql";
import { readStoredRows, type StoredRows } from "./stored-rows.ts";

/** One generation as stored. */
export interface StoredGeneration {
  readonly generation: number;
  readonly killSwitch: KillSwitchRecord | undefined;
  readonly rows: StoredRows;
  readonly tokens: readonly TokenRecord[];
}

/** Reads everything from one view. */
export async function readStored(view: StoreView): Promise<StoredGeneration> {
  const { generation, killSwitch } = await view.pulse();
  const rows = await readStoredRows(view);
  return { generation, killSwitch, rows, tokens: await view.tokens() };
}

/** Covers what nodes decide by, and not who changed it, when and why. */
export function digestRows(rows: StoredRows): string {
  const { policies, underway, subjects, subjectLimits, disabled = [], blocks = [] } = rows;
  const hash = createHash("sha256");
  for (const { id, version, document } of policies) hash.update(`policy\0${id}\0${version}\0${document}\0`);
  const trials = underway.map(({ rollout, version }) =>
    JSON.stringify([
      [
        rollout.id,
        rollout.policy,
        rollout.fromVersion,
        rollout.state,
        rollout.shadow,
        rollout.by,
        rollout.steps,
        rollout.step,
      ],
      version.version,
      version.document,
    ]),
  );
  for (const trial of trials.toSorted()) hash.update(`trial\0${trial}\0`);
  for (const { dimension, value, tier = "" } of subjects) hash.update(`subject\0${dimension}\0${value}\0${tier}\0`);
  for (const { dimension, value, policy, limit, windows, untilMs = "" } of subjectLimits)
    hash.update(`limit\0${dimension}\0${value}\0${policy}\0${limit}\0${windows}\0${untilMs}\0`);
  for (const { policy, mode, untilMs } of disabled) hash.update(`disabled\0${policy}\0${mode}\0${untilMs}\0`);
  for (const { dimension, value, policies: only, untilMs } of blocks)
    hash.update(`block\0${dimension}\0${value}\0${only.join("\n")}\0${untilMs}\0`);
  return hash.digest("hex");
}
