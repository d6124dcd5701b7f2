import { SluiceError, StoreUnavailable } from "sluice";
import { printable, printableLines, redactText, renderPath, renderPolicyProblem } from "sluice/internal";
import { flagForField } from "./arguments/flag-for-field.ts";
import { CommandError } from "./terminal/terminal.ts";

/** The variable that names policy files, for servers and for commands that decide in their own process. */
export const configVariable = "RATE_LIMIT_CONFIG";

/** What names the policies of a command that reads them itself. */
export function policySource(flag: string | true | undefined): string {
  return flag === undefined ? configVariable : "--config";
}

/** Says what named the policies that cannot be used: a file that only the environment names is not in the command line. */
export function throwWithSource(error: unknown, source: string | undefined): never {
  if (source === undefined || !(error instanceof SluiceError) || error.code !== "invalid_policies") throw error;
  if (error.problems.length === 0) throw error;
  throw new CommandError(renderProblems(error, ` in the policies of ${source}`).trimEnd());
}

function renderProblems(error: SluiceError, where = ""): string {
  const count = error.problems.length === 1 ? "1 problem" : `${error.problems.length} problems`;
  const isOfCheck = error.code === "policy_not_found" || error.code === "invalid_request";
  const problems = error.problems.map((problem) =>
    printable(
      // What stands in a file was not typed.
      isOfCheck && problem.place === undefined
        ? `${flagForField(renderPath(problem.path))}: ${problem.message}`
        : renderPolicyProblem(problem),
    ),
  );
  return [...problems, `${count}${where}; nothing was started or decided`, ""].join("\n");
}

/** Messages repeat what was typed, or what a server answered: none of it may command the terminal. */
export function renderFailure(error: unknown): string {
  if (error instanceof SluiceError && error.problems.length > 0) return renderProblems(error);
  if (knownErrors.some((kind) => error instanceof kind)) return `${printableLines((error as Error).message)}\n`;
  const unforeseen = error instanceof Error ? (error.stack ?? error.message) : String(error);
  return `${printableLines(redactText(unforeseen, 16_384))}\n`;
}

/** Errors whose message says everything. */
const knownErrors = [SluiceError, CommandError, StoreUnavailable];
