import {
  type ErrorCode,
  type Problem,
  renderPath,
  SluiceError,
  StoreUnavailable,
  type StoreUnavailableReason,
} from "sluice";
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
  store_unavailable: 503,
};

const titles: Readonly<Record<number, string>> = {
  400: "Bad Request",
  404: "Not Found",
  405: "Method Not Allowed",
  408: "Request Timeout",
  413: "Content Too Large",
  415: "Unsupported Media Type",
  417: "Expectation Failed",
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

/** Most problems that one error lists. */
export const maxListedProblems = 20;
const maxDetailLength = 1_000;
const maxFieldLength = 256;

export function renderErrorBody(
  status: number,
  code: ErrorCode,
  detail: string,
  problems: readonly Problem[] = [],
  maxProblems: number = maxListedProblems,
): ErrorBody {
  const told = cut(maxProblems > 0 ? detail : detail.split("\n", 1)[0]!, maxDetailLength);
  const body: ErrorBody = { type: "about:blank", title: titles[status] ?? "Error", status, code, detail: told };
  if (problems.length === 0 || maxProblems === 0) return body;
  const listed = problems.slice(0, maxProblems).map(({ path, message }) => ({
    field: cut(renderPath(path), maxFieldLength),
    message: cut(message, maxDetailLength),
  }));
  const left = problems.length - listed.length;
  if (left > 0) listed.push({ field: "(more)", message: `and ${left} more` });
  return { ...body, problems: listed };
}

function cut(text: string, length: number): string {
  return text.length <= length ? text : `${text.slice(0, length - 1)}…`;
}

/** Told in words of our own: what a store says of itself may name hosts and more. */
const outages: Readonly<Record<StoreUnavailableReason, string>> = {
  storage_unavailable: "the counters cannot be reached",
  storage_timeout: "the counters did not answer in time",
  storage_overloaded: "too many checks are waiting for the counters",
};

/** Seconds until it is worth asking counters again that were away. */
const retryAfterOutage = "5";

/**
 * What a caller is told of an error. What we did not foresee is told without particulars. Answers are not much longer
 * than what is answered: problems beyond `maxProblems` are counted, not listed.
 */
export function renderError(error: unknown, maxProblems: number = maxListedProblems): ErrorBody {
  if (error instanceof SluiceError) {
    const status = statusByCode[error.code];
    if (status !== 500) return renderErrorBody(status, error.code, error.message, error.problems, maxProblems);
  }
  if (error instanceof StoreUnavailable) {
    const detail = `${outages[error.reason]}; nothing is wrong with the request, so repeat it in a few seconds`;
    return renderErrorBody(statusByCode[error.code], error.code, detail);
  }
  return renderErrorBody(
    500,
    "internal",
    "something went wrong here, not in your request; the server's log has the particulars",
  );
}

/** Where counters are away it says when to come back. */
export function errorResponse(body: ErrorBody, headers: Readonly<Record<string, string>> = {}): HttpResponse {
  const retry = body.code === "store_unavailable" ? { "retry-after": retryAfterOutage } : undefined;
  return { status: body.status, headers: { "content-type": problemType, ...retry, ...headers }, body };
}
