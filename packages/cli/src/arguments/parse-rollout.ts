import type { RolloutRequestBody } from "@sluice/protocol/admin";
import { CommandError } from "../terminal/terminal.ts";
import { parseSteps } from "./parse-steps.ts";
import { parseDurationFlag, parseUntil } from "./parse-time.ts";

/** How a new version is to go out, on a command line. */
export interface RolloutFlags {
  /** `true`: by the steps that are usual. */
  readonly rollout?: string | true;
  readonly by?: string;
  readonly shadow?: boolean;
  readonly start?: string;
  readonly observe?: string;
  readonly expectMoreDenials?: boolean;
}

/** A comparison needs five minutes of traffic under the old version; the control plane refuses less, but for none. */
const leastObserveMs = 300_000;

function parseObserve(text: string): number {
  if (/^0[a-z]*$/.test(text)) return 0;
  const ms = parseDurationFlag("--observe", text);
  if (ms >= leastObserveMs) return ms;
  throw new CommandError(
    `--observe is ${JSON.stringify(text)}: too short to compare the first step with. Write 5m or more, or 0 to begin at once, without comparing the first step`,
  );
}

/** Undefined if it goes to all subjects at once. */
export function parseRollout(flags: RolloutFlags, nowMs: number): RolloutRequestBody | undefined {
  const { rollout, by, shadow, start, observe, expectMoreDenials } = flags;
  if (rollout === undefined) {
    const [alone] = Object.entries({ by, shadow, start, observe, "expect-more-denials": expectMoreDenials }).find(
      ([, value]) => value !== undefined,
    ) ?? [undefined];
    if (alone !== undefined) throw new CommandError(`--${alone} says how a rollout goes; add --rollout`);
    return undefined;
  }
  return {
    ...(rollout !== true && { steps: parseSteps(rollout, shadow) }),
    ...(by !== undefined && { by }),
    ...(shadow === true && { shadow }),
    ...(start !== undefined && { starts_ms: parseUntil("--start", start, nowMs) }),
    ...(observe !== undefined && { observe_for_ms: parseObserve(observe) }),
    ...(expectMoreDenials === true && { expect_more_denials: true }),
  };
}
