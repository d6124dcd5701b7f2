import { type Problem, SluiceError } from "sluice";
import { printable, printableJson, renderPath, renderPolicyProblem } from "sluice/internal";
import { readPolicyFiles } from "sluice/policy-file";
import { parsePolicyFiles } from "sluice/policy-text";
import type { ExitCode, Terminal } from "../terminal/terminal.ts";

export interface LintOptions {
  readonly json?: boolean;
  /** Warnings fail too. */
  readonly strict?: boolean;
}

type Severity = "error" | "warning";

interface Finding {
  readonly severity: Severity;
  readonly problem: Problem;
}

/** `sluice policy lint`: each path is one configuration, a file or a folder. */
export async function policyLint(
  paths: readonly string[],
  options: LintOptions,
  terminal: Terminal,
): Promise<ExitCode> {
  const findings: Finding[] = [];
  let files = 0;
  let unreadable = false;
  for (const path of paths) {
    try {
      const found = await readPolicyFiles(path);
      files += found.length;
      findings.push(...lint(() => parsePolicyFiles(found).warnings));
    } catch (error) {
      unreadable = true;
      findings.push(...lint(() => rethrow(error)));
    }
  }
  terminal.stdout.write(options.json === true ? renderJson(findings) : renderText(findings, files));
  const errors = countFindings(findings, "error");
  if (unreadable) return 2;
  return errors > 0 || (options.strict === true && findings.length > 0) ? 1 : 0;
}

function lint(findWarnings: () => readonly Problem[]): Finding[] {
  try {
    return findWarnings().map((problem) => ({ severity: "warning", problem }));
  } catch (error) {
    if (!(error instanceof SluiceError) || error.code !== "invalid_policies") throw error;
    return error.problems.map((problem) => ({ severity: "error", problem }));
  }
}

function rethrow(error: unknown): never {
  throw error;
}

function renderText(findings: readonly Finding[], files: number): string {
  const lines = findings.map(({ severity, problem }) => {
    const { place, ...rest } = problem;
    if (isOfWholeFile(problem)) return `${severity}: ${renderPolicyProblem(problem)}`;
    const where = place === undefined ? "" : `${place.file ?? "(text)"}:${place.line}:${place.column}: `;
    return `${where}${severity}: ${renderPolicyProblem(rest)}`;
  });
  const summary = `${amount(files, "file")}: ${amount(countFindings(findings, "error"), "error")}, ${amount(countFindings(findings, "warning"), "warning")}`;
  return `${[...lines, summary].map(printable).join("\n")}\n`;
}

/** That a file does not exist, or is empty, has no line to jump to. */
function isOfWholeFile({ path, place }: Problem): boolean {
  return path.length === 0 && place?.line === 1 && place.column === 1;
}

function renderJson(findings: readonly Finding[]): string {
  const problems = findings.map(({ severity, problem: { place, path, message } }) => ({
    severity,
    file: place?.file,
    line: place?.line,
    column: place?.column,
    field: renderPath(path),
    message,
  }));
  const errors = countFindings(findings, "error");
  const warnings = countFindings(findings, "warning");
  return `${printableJson(JSON.stringify({ ok: errors === 0, errors, warnings, problems }, undefined, 2))}\n`;
}

function countFindings(findings: readonly Finding[], severity: Severity): number {
  return findings.filter((one) => one.severity === severity).length;
}

function amount(count: number, what: string): string {
  return `${count} ${what}${count === 1 ? "" : "s"}`;
}
