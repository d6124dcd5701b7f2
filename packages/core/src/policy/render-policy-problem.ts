import { type Problem, renderProblem } from "../errors.ts";

/**
 * `policies.yaml:4:7 policies[0].id: is missing`; a problem with a whole file is a sentence: `policies.yaml is empty`.
 */
export function renderPolicyProblem(problem: Problem): string {
  const { path, place, message } = problem;
  if (path.length > 0) return renderProblem(problem);
  if (place === undefined) return message;
  const { file = "(text)", line, column } = place;
  return line === 1 && column === 1 ? `${file} ${message}` : `${file}:${line}:${column} ${message}`;
}
