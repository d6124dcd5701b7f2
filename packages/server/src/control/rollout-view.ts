import type { RolloutRecord } from "@sluice/sql";
import { parseRolloutFigures } from "../rollouts/rollout-figures.ts";
import type { RolloutView } from "./control-plane.ts";
import { percentOf } from "./stored-rows.ts";

export function rolloutView(record: RolloutRecord): RolloutView {
  return { ...record, percent: percentOf(record), figures: parseRolloutFigures(record.figures) };
}

/** What the audit keeps of a rollout that somebody began, moved or ended. */
export function auditedRollout(record: RolloutRecord): unknown {
  const { id, policy, fromVersion, toVersion, state, step, shadow, reason } = record;
  return { rollout: id, policy, from_version: fromVersion, to_version: toVersion, state, step, shadow, reason };
}
