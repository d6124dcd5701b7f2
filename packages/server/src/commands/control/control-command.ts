import { type Command, Option } from "commander";
import type { ExitCode } from "../terminal.ts";
import type { ControlOptions, ControlSession } from "./control-session.ts";

/** Runs the work of a command with a control plane to ask, and ends the program with its exit code. */
export type RunOnControlPlane = (
  options: ControlOptions,
  work: (session: ControlSession) => Promise<ExitCode>,
) => Promise<void>;

export const controlExitCodes = `
Exit codes: 0 done, or the same; 1 not done, not there, different, or policies with errors; 2 wrong usage; 3 refused: no token, or
not its role; 4 changed meanwhile; 5 the control plane cannot be reached, or not asked now; 6 waited in vain.`;

/** A command that asks a control plane. */
export function controlCommand(parent: Command, form: string, description: string): Command {
  return parent
    .command(form)
    .description(description)
    .option("--admin <url>", "the control plane (SLUICE_ADMIN_URL, default http://127.0.0.1:8090)")
    .option("--token-file <path>", "file that holds the token to ask with (else SLUICE_TOKEN)")
    .option("--json", "print one JSON document");
}

/** One that changes something. */
export function changeCommand(
  parent: Command,
  form: string,
  description: string,
  { why = "why" }: { readonly why?: WhyWord } = {},
): Command {
  return withWhy(controlCommand(parent, form, description), why)
    .option("--dry-run", "tell what would be done, and do nothing")
    .option("--yes", "do it without asking")
    .option("--wait", "wait until every node decides by it")
    .addOption(
      new Option("--timeout <while>", "how long to wait at most, such as 30s (default 1m)").implies({ wait: true }),
    );
}

type WhyWord = "why" | "reason";

/** `--why`, or `--reason` where one is required. Both are taken by either, and found as `why`. */
export function withWhy(command: Command, word: WhyWord = "why"): Command {
  const help = word === "reason" ? "why, for the history; required" : "why, for the history";
  const other = word === "reason" ? "why" : "reason";
  return command
    .addOption(new Option(`--${word} <text>`, help))
    .addOption(new Option(`--${other} <text>`).hideHelp())
    .on("option:reason", (text: string) => command.setOptionValueWithSource("why", text, "cli"));
}

export function withExamples(command: Command, notes: string, ...examples: readonly string[]): Command {
  const list = examples.map((example) => `\n  ${example}`).join("");
  const heading = examples.length === 1 ? "Example:" : "Examples:";
  return command.addHelpText("after", `\n${notes === "" ? "" : `${notes}\n\n`}${heading}${list}\n${controlExitCodes}`);
}
