import type { ChangeBody } from "@sluice/protocol/admin";
import { printable } from "sluice/internal";
import { parseDurationFlag } from "../arguments/parse-time.ts";
import { CommandError, type ExitCode } from "../terminal/terminal.ts";
import type { ControlSession } from "./control-session.ts";
import { flagFor } from "./refused-request.ts";
import { waitForNodes } from "./wait-for-nodes.ts";

/** What every command takes that changes something. */
export interface ChangeFlags {
  readonly dryRun?: boolean;
  readonly why?: string;
  readonly yes?: boolean;
  readonly wait?: boolean;
  readonly timeout?: string;
}

const nodesWithinMs = 60_000;

export function readTimeout({ timeout }: ChangeFlags): number | undefined {
  return timeout === undefined ? undefined : parseDurationFlag("--timeout", timeout);
}

/** Why something is done that may not be done without a reason. */
export function demandReason({ why }: ChangeFlags): string {
  if (why !== undefined && why.trim() !== "") return why;
  throw new CommandError("say why with --reason: the history and the audit show it");
}

/** Tells what is legal, but may surprise. */
export function writeWarnings(
  { warnings = [] }: Pick<ChangeBody, "warnings">,
  { terminal }: Pick<ControlSession, "terminal">,
): void {
  for (const { field, message } of warnings)
    terminal.stderr.write(`warning: ${printable(field === "(root)" ? message : `${flagFor(field)}: ${message}`)}\n`);
}

/** With `--strict`: tries it without doing it, and refuses what would be warned of. */
export async function demandNoWarnings(
  { strict }: { readonly strict?: boolean },
  tryIt: () => Promise<Pick<ChangeBody, "warnings">>,
  session: Pick<ControlSession, "terminal">,
): Promise<void> {
  if (strict !== true) return;
  const tried = await tryIt();
  if ((tried.warnings ?? []).length === 0) return;
  writeWarnings(tried, session);
  throw new CommandError("nothing was done, because --strict refuses what is warned of", 1);
}

/** With `--wait`, until the whole fleet decides by a change. */
export async function settleChange(
  { generation }: Pick<ChangeBody, "generation">,
  flags: ChangeFlags,
  session: ControlSession,
): Promise<ExitCode> {
  if (flags.wait !== true || generation === undefined || generation === null) return 0;
  return waitForNodes(generation, readTimeout(flags) ?? nodesWithinMs, session);
}

/** The flag of a dry run. */
export const nothingDone = "Dry run: nothing was changed.\n";
