import type { RolloutStepBody } from "@sluice/protocol/admin";
import { CommandError } from "../terminal/terminal.ts";
import { tryPositiveDuration } from "./parse-time.ts";

/**
 * `1%:10m,10%:10m,100%`: which percent of subjects, and how long before the next step, or after the last one the end. Without a
 * while a step waits for a person, but for the last one: who joins there is looked at for as long as those before.
 */
export function parseSteps(text: string, shadow: boolean = false): readonly RolloutStepBody[] {
  const words = text.split(",");
  const steps: RolloutStepBody[] = [];
  for (const [index, word] of words.entries()) {
    const [, percent, hold] = /^\s*(\d{1,3}(?:\.\d{1,2})?)\s*%?\s*(?::\s*(\S+))?\s*$/.exec(word) ?? [];
    if (percent === undefined || Number(percent) <= 0 || Number(percent) > 100)
      throw wrong(text, `${JSON.stringify(word)} is not a step`);
    const before = steps.at(-1);
    if (before !== undefined && before.percent >= Number(percent))
      throw wrong(text, "each step should be for more subjects");
    const isLast = index === words.length - 1;
    const otherwise = isLast ? (before?.hold_ms ?? usualHoldMs) : 0;
    const holdMs = readHold(hold, otherwise);
    if (holdMs === undefined) throw wrong(text, `${JSON.stringify(hold)} is not a duration such as 10m`);
    steps.push({ percent: Number(percent), hold_ms: holdMs });
  }
  // A shadow rollout need not reach all subjects.
  if (!shadow && steps.at(-1)?.percent !== 100) throw wrong(text, "the last step should be 100%");
  return steps;
}

const usualHoldMs = 600_000;

/** Undefined: not a duration. */
function readHold(text: string | undefined, otherwise: number): number | undefined {
  if (text === undefined) return otherwise;
  return text === "hand" ? 0 : tryPositiveDuration(text);
}

function wrong(text: string, why: string): CommandError {
  return new CommandError(
    `--rollout is ${JSON.stringify(text)}: ${why}. Write steps such as 1%:10m,10%:10m,100%; a step without a duration, other than the last, waits for --advance. A path goes before --rollout`,
  );
}
