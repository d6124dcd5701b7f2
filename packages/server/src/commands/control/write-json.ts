import type { ControlSession } from "./control-session.ts";

/** The one document that `--json` prints. */
export function writeJson({ terminal }: Pick<ControlSession, "terminal">, value: unknown): void {
  terminal.stdout.write(`${JSON.stringify(value, undefined, 2)}\n`);
}
