import { CommandError } from "../terminal/terminal.ts";

/** A version of a policy: 1, 2, 3 … */
export function parseVersion(flag: string, text: string): number {
  if (/^[1-9]\d{0,14}$/.test(text)) return Number(text);
  throw new CommandError(
    `${flag} is ${JSON.stringify(text)}; it should be a version, such as 3 (sluice policy history)`,
  );
}

/** How many items a list may have. */
export function parseCount(flag: string, text: string, most: number): number {
  if (/^[1-9]\d{0,9}$/.test(text) && Number(text) <= most) return Number(text);
  throw new CommandError(`${flag} is ${JSON.stringify(text)}; it should be a whole number from 1 to ${most}`);
}
