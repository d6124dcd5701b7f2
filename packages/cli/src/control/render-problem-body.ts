import type { ProblemBody } from "@sluice/protocol/http";

/** `policies.yaml:4:7 policies[0].id: is missing`; of a file as a whole, a sentence: `policies.yaml is empty`. */
export function renderProblemBody({ field, message, file, line = 1, column = 1 }: ProblemBody): string {
  const isWhole = field === "(root)";
  const what = isWhole ? message : `${field}: ${message}`;
  if (file === undefined) return what;
  return isWhole && line === 1 && column === 1 ? `${file} ${what}` : `${file}:${line}:${column} ${what}`;
}
