import { type ErrorCode, type Problem, renderPath, SluiceError } from "sluice";
import type { HttpResponse } from "./exchange.ts";

const statusByCode: Readonly<Record<ErrorCode, number>> = {
  invalid_request: 400,
  policy_not_found: 400,
  not_found: 404,
  body_too_large: 413,
  idempotency_conflict: 422,
  invalid_policies: 400,
  not_local: 500,
  internal: 500,
  not_ready: 503,
};

const titles: Readonly<Record<number, string>> = {
  400: "Bad Request",
  404: "Not Found",
  405: "Method Not Allowed",
  408: "Request Timeout",
  413: "Content Too Large",
  415: "Unsupported Media Type",
  422: "Unprocessable Content",
  431: "Request Header Fields Too Large",
  500: "Internal Server Error",
  503: "Service Unavailable",
};

export const problemType = "application/problem+json";

/** An error as a body of RFC 9457, with Sluice's code and every field that is wrong. */
export interface ErrorBody {
  readonly type: "about:blank";
  readonly title: string;
  readonly status: number;
  readonly code: ErrorCode;
  readonly detail: string;
  readonly problems?: readonly { readonly field: string; readonly message: string }[];
}

export function renderErrorBody(
  status: number,
  code: ErrorCode,
  detail: string,
  problems: readonly Problem[] = [],
): ErrorBody {
  const body: ErrorBody = { type: "about:blank", title: titles[status] ?? "Error", status, code, detail };
  if (problems.length === 0) return body;
  return { ...body, problems: problems.map(({ path, message }) => ({ field: renderPath(path), message })) };
}

/** What a caller is told of an error. What we did not foresee is told without particulars. */
export function renderError(error: unknown): ErrorBody {
  if (error instanceof SluiceError) {
    const status = statusByCode[error.code];
    if (status !== 500) return renderErrorBody(status, error.code, error.message, error.problems);
  }
  return renderErrorBody(
    500,
    "internal",
    "something went wrong here, not in your request; the server's log has the particulars",
  );
}

export function errorResponse(body: ErrorBody, headers: Readonly<Record<string, string>> = {}): HttpResponse {
  return { status: body.status, headers: { "content-type": problemType, ...headers }, body };
}
