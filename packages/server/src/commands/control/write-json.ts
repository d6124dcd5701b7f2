import type { ControlSession } from "./control-session.ts";

/** What terminals obey and JSON does not escape by itself. */
const obeyed = /[\u007f-\u009f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/g;

/** The one document that `--json` prints. */
export function writeJson({ terminal }: Pick<ControlSession, "terminal">, value: unknown): void {
  terminal.stdout.write(`${renderJson(value, 2)}\n`);
}

/** JSON that does nothing to the terminal it is shown in. */
export function renderJson(value: unknown, indent: number = 0): string {
  const escaped = (one: string): string => `\\u${one.charCodeAt(0).toString(16).padStart(4, "0")}`;
  return JSON.stringify(value, undefined, indent).replaceAll(obeyed, escaped);
}
