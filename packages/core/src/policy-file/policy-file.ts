import { readFileSync } from "node:fs";
import { SluiceError } from "../errors.ts";
import type { PolicySet } from "../policy/policy.ts";
import { parsePolicyFiles } from "../policy-text/parse-policy-text.ts";

/**
 * Policies from one or several files, in YAML or JSON: `createLimiter({ policies: policyFile("limits.yaml") })`. Reads
 * synchronously; throws `invalid_policies` with every problem and its line, also if a file cannot be read.
 */
export function policyFile(...paths: readonly [string, ...string[]]): PolicySet {
  return parsePolicyFiles(paths.map((file) => ({ file, text: readPolicyText(file) }))).policySet;
}

function readPolicyText(file: string): string {
  try {
    return readFileSync(file, "utf8");
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code ?? "";
    const message = reasons[code] ?? `cannot be read: ${code === "" ? String(error) : code}`;
    throw new SluiceError("invalid_policies", `${file} ${message}`, [
      { path: [], message, place: { file, line: 1, column: 1 } },
    ]);
  }
}

const reasons: Readonly<Record<string, string>> = {
  ENOENT: "does not exist",
  EISDIR: "is a folder; name the files in it",
  EACCES: "cannot be read: permission denied",
};
