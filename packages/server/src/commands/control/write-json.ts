import { printableJson } from "sluice";
import type { ControlSession } from "./control-session.ts";

/** The one document that `--json` prints. */
export function writeJson({ terminal }: Pick<ControlSession, "terminal">, value: unknown): void {
  terminal.stdout.write(`${renderJson(value, 2)}\n`);
}

/** JSON that does nothing to the terminal it is shown in. */
export function renderJson(value: unknown, indent: number = 0): string {
  return printableJson(JSON.stringify(value, undefined, indent));
}
