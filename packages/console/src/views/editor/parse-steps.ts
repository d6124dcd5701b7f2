import type { RolloutStepBody } from "@sluice/protocol/admin";
import { parseDuration } from "sluice/internal";

/** `1% 10m, 10% 10m, 100%`: shares of subjects, and how long each holds. A step without a time waits for an operator; the last needs none. */
export function parseSteps(text: string): readonly RolloutStepBody[] | string {
  const steps: RolloutStepBody[] = [];
  const parts = text.split(",").map((part) => part.trim());
  for (const part of parts) {
    const [, percent = "", hold = ""] = /^(\d+(?:\.\d+)?)\s*%?\s*(.*)$/.exec(part) ?? [];
    if (percent === "") return `“${part}” is not a step. Write a share and how long it holds, such as 10% 30m.`;
    const share = Number(percent);
    if (share > 100) return `${share} % is more than all subjects.`;
    const before = steps.at(-1)?.percent ?? 0;
    if (share <= before && steps.length > 0) return `${share} % does not come after ${before} %. Steps go up.`;
    const holdMs = hold === "" ? 0 : readHold(hold);
    if (holdMs === undefined) return `“${hold}” is not a time. Write a number and a unit, such as 30m.`;
    steps.push({ percent: share, hold_ms: holdMs });
  }
  return steps;
}

function readHold(text: string): number | undefined {
  try {
    return parseDuration(text);
  } catch {
    return undefined;
  }
}
