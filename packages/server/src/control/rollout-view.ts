import type { RolloutRecord } from "@sluice/sql";
import { parseRolloutFigures } from "../rollouts/rollout-figures.ts";
import type { RolloutView } from "./control-plane.ts";
import { percentOf } from "./stored-rows.ts";

export function rolloutView(record: RolloutRecord): RolloutView {
  return { ...record, percent: percentOf(record), figures: parseRolloutFigures(record.figures) };
}
