import type { AdminErrorBody } from "@sluice/protocol/admin";

/** The server refused a request, or there was no answer: then `status` is 0, and `code` is `unreachable`. */
export class ApiError extends Error {
  override readonly name: string = "ApiError";
  readonly status: number;
  /** Stable; docs/errors.md lists all codes. `not_sluice` if a proxy answered instead. */
  readonly code: string;
  readonly problem: AdminErrorBody | undefined;
  readonly retryAfterMs: number | undefined;

  constructor(
    status: number,
    code: string,
    message: string,
    more: Partial<Pick<ApiError, "problem" | "retryAfterMs">> = {},
  ) {
    super(message);
    this.status = status;
    this.code = code;
    this.problem = more.problem;
    this.retryAfterMs = more.retryAfterMs;
  }

  /** Why a change was refused: the server has another version than the page. */
  get currentVersion(): number | undefined {
    return this.code === "version_conflict" ? this.problem?.current_version : undefined;
  }
}

export function parseApiError(status: number, text: string, retryAfter: string | null): ApiError {
  const problem = parseProblem(text);
  const seconds = Number(retryAfter ?? Number.NaN);
  const retryAfterMs = Number.isFinite(seconds) ? seconds * 1_000 : undefined;
  if (problem === undefined)
    return new ApiError(status, "not_sluice", `The answer has status ${status} and does not come from Sluice.`, {
      retryAfterMs,
    });
  return new ApiError(status, problem.code, problem.detail, { problem, retryAfterMs });
}

function parseProblem(text: string): AdminErrorBody | undefined {
  try {
    const body = JSON.parse(text) as Partial<AdminErrorBody> | null;
    return typeof body?.code === "string" && typeof body.detail === "string" ? (body as AdminErrorBody) : undefined;
  } catch {
    return undefined;
  }
}
