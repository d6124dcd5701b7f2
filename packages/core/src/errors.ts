/**
 * The closed set of reasons Sluice cannot answer. A denial is not among them: it is an answer. Every code is explained
 * in docs/errors.md; a test walks both lists.
 */
export const errorCodes = [
  "invalid_request",
  "invalid_policies",
  "policy_not_found",
  "idempotency_conflict",
  "not_local",
  "not_leasable",
  "not_holdable",
  "body_too_large",
  "not_found",
  "resource_not_found",
  "version_conflict",
  "already_exists",
  "rate_limited",
  "unauthenticated",
  "permission_denied",
  "not_ready",
  "overloaded",
  "store_unavailable",
  "policy_store_unavailable",
  "internal",
] as const;

export type ErrorCode = (typeof errorCodes)[number];

/** One thing that is wrong, and where. */
export interface Problem {
  /** The path to the field: `["policies", 0, "limits", 1, "by"]`. */
  readonly path: readonly (string | number)[];
  /** What is wrong and what would be right, in one sentence. */
  readonly message: string;
  /** Its place in the source text, if there is one. Lines and columns count from 1. */
  readonly place?: { readonly file?: string; readonly line: number; readonly column: number };
}

export class SluiceError extends Error {
  override readonly name = "SluiceError";
  readonly code: ErrorCode;
  /** Every field that is wrong, for `invalid_request` and `invalid_policies`. */
  readonly problems: readonly Problem[];

  constructor(code: ErrorCode, message: string, problems: readonly Problem[] = []) {
    super(message);
    this.code = code;
    this.problems = problems;
  }
}

/** `policies[0].limits[1].by`, or `(root)` for the whole document. */
export function renderPath(path: readonly (string | number)[]): string {
  let text = "";
  for (const step of path) {
    if (typeof step === "number") text += `[${step}]`;
    else if (/^[A-Za-z_][\w-]*$/.test(step)) text += text === "" ? step : `.${step}`;
    else text += `[${JSON.stringify(step)}]`;
  }
  return text === "" ? "(root)" : text;
}

/** `policies.yaml:4:7 policies[0].id: …`, the line an editor can jump to. */
export function renderProblem(problem: Problem): string {
  const { place } = problem;
  const where = place === undefined ? "" : `${place.file ?? "(text)"}:${place.line}:${place.column} `;
  return `${where}${renderPath(problem.path)}: ${problem.message}`;
}
