import { type Command, Option } from "commander";
import { parseDurationFlag } from "../arguments/parse-time.ts";
import type { ExitCode } from "../terminal/terminal.ts";
import type { ControlOptions, ControlSession } from "./control-session.ts";

/** Runs the work of a command with a control plane to ask, and ends the program with its exit code. */
export type RunOnControlPlane = (
  options: ControlOptions,
  work: (session: ControlSession) => Promise<ExitCode>,
) => Promise<void>;

export const controlExitCodes = `
Exit codes: 0 done, or the same; 1 not done, nothing to do, not found, different, or policies with errors; 2 wrong usage;
3 unauthorized: no token, or its role may not do this; 4 conflict: another command changed it meanwhile; 5 control plane
unavailable; 6 timed out waiting.`;

/** A command that asks a control plane. */
export function controlCommand(parent: Command, form: string, description: string): Command {
  return askingOptions(
    parent
      .command(form)
      .description(description)
      .option("--admin <url>", "the control plane (SLUICE_ADMIN_URL, default http://127.0.0.1:8090)"),
  ).option("--json", "print one JSON document");
}

/** What a command takes that asks over HTTP. */
export function askingOptions(command: Command): Command {
  return command
    .option("--token-file <path>", "file that holds the token to ask with (else SLUICE_TOKEN)")
    .option("--ca <path>", "trust the certificates in this file, in PEM, for https:// (SLUICE_CA)");
}

export interface ChangeCommandOptions {
  readonly why?: WhyWord;
  readonly asks?: boolean;
  readonly waiting?: WaitingHelp;
}

/** What `--wait` and `--timeout` mean to a command. */
export interface WaitingHelp {
  readonly wait: string;
  readonly timeout: string;
}

const forNodes: WaitingHelp = {
  wait: "wait until every node decides by it",
  timeout: "how long to wait at most, such as 30s; implies --wait (default 1m)",
};

/** One that changes something. */
export function changeCommand(
  parent: Command,
  form: string,
  description: string,
  { why = "why", asks = true, waiting = forNodes }: ChangeCommandOptions = {},
): Command {
  const command = withWhy(controlCommand(parent, form, description), why).option(
    "--dry-run",
    "show what would be done, and do nothing",
  );
  if (asks) command.option("--yes", "do it without asking");
  return command.option("--wait", waiting.wait).addOption(
    new Option("--timeout <duration>", waiting.timeout)
      // Read before anything is done: a slip must not be found after the change.
      .argParser((text) => {
        parseDurationFlag("--timeout", text);
        return text;
      })
      .implies({ wait: true }),
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
