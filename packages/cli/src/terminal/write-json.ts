import { printableJson } from "sluice/internal";
import type { Terminal } from "./terminal.ts";

/** The one document that `--json` prints. */
export function writeJson({ terminal }: { readonly terminal: Terminal }, value: unknown): void {
  terminal.stdout.write(`${renderJson(value, 2)}\n`);
}

/** JSON that does nothing to the terminal it is shown in. */
export function renderJson(value: unknown, indent: number = 0): string {
  return printableJson(JSON.stringify(value, undefined, indent));
}
