import type { CheckRequest } from "sluice";
import { maxCost } from "sluice/internal";
import { CommandError } from "../terminal/terminal.ts";
import type { ServerFlags } from "./find-token.ts";

/** What `check` and `explain` take on the command line. */
export interface CheckOptions extends ServerFlags {
  readonly cost?: string;
  readonly domain?: string;
  readonly id?: string;
  readonly policy?: readonly string[];
  readonly preview?: boolean;
  readonly details?: boolean;
  /** Decide in this process. */
  readonly local?: boolean;
  readonly config?: string;
  readonly redis?: string;
}

/** `user=u1 endpoint=/v1/orders --cost 2` as a check. */
export function parseCheckRequest(
  words: readonly string[],
  options: Omit<CheckOptions, keyof ServerFlags>,
): CheckRequest {
  const dimensions: Record<string, string> = {};
  for (const word of words) {
    const split = word.indexOf("=");
    if (split < 1)
      throw new CommandError(`${JSON.stringify(word)} is not a dimension; write it as name=value, such as user=u1`);
    const name = word.slice(0, split);
    if (Object.hasOwn(dimensions, name)) throw new CommandError(`the dimension ${name} is given twice; give it once`);
    dimensions[name] = word.slice(split + 1);
  }
  return {
    dimensions,
    ...(options.cost !== undefined && { cost: parseWhole("--cost", options.cost, 0, maxCost) }),
    ...(options.domain !== undefined && { domain: options.domain }),
    ...(options.id !== undefined && { id: options.id }),
    ...(options.policy !== undefined && { policies: options.policy }),
    ...(options.preview === true && { preview: true }),
    ...(options.details === true && { details: true }),
  };
}

export function parseWhole(flag: string, text: string, least: number, most: number): number {
  const value = /^\d+$/.test(text) ? Number(text) : Number.NaN;
  if (value >= least && value <= most) return value;
  throw new CommandError(`${flag} is ${JSON.stringify(text)}; it should be a whole number from ${least} to ${most}`);
}
