import type { ErrorBody } from "@sluice/protocol/http";
import type { ErrorCode } from "sluice";
import { cutText, describeError, maxErrorFields } from "../../service/describe-error.ts";
import { VersionConflict } from "../../service/version-conflict.ts";
import type { HttpResponse } from "./exchange.ts";

const statusByCode: Readonly<Record<ErrorCode, number>> = {
  invalid_request: 400,
  policy_not_found: 400,
  not_found: 404,
  resource_not_found: 404,
  version_conflict: 409,
  already_exists: 409,
  not_leasable: 409,
  not_holdable: 409,
  rate_limited: 429,
  body_too_large: 413,
  idempotency_conflict: 422,
  invalid_policies: 400,
  not_local: 500,
  internal: 500,
  unauthenticated: 401,
  permission_denied: 403,
  not_ready: 503,
  overloaded: 503,
  store_unavailable: 503,
  policy_store_unavailable: 503,
};

const titles: Readonly<Record<number, string>> = {
  400: "Bad Request",
  401: "Unauthorized",
  403: "Forbidden",
  404: "Not Found",
  405: "Method Not Allowed",
  408: "Request Timeout",
  409: "Conflict",
  413: "Content Too Large",
  415: "Unsupported Media Type",
  417: "Expectation Failed",
  422: "Unprocessable Content",
  429: "Too Many Requests",
  431: "Request Header Fields Too Large",
  500: "Internal Server Error",
  503: "Service Unavailable",
};

export const problemType = "application/problem+json";

const maxDetailLength = 1_000;

export function renderErrorBody(status: number, code: ErrorCode, detail: string): ErrorBody {
  const title = titles[status] ?? "Error";
  return { type: "about:blank", title, status, code, detail: cutText(detail, maxDetailLength) };
}

/** Seconds until unavailable counters are worth asking again. */
const retryAfterOutage = "5";

/** An error as a body. Problems beyond `maxProblems` are counted, not listed. */
export function renderError(error: unknown, maxProblems: number = maxErrorFields): ErrorBody {
  const { code, message, fields, more } = describeError(error, maxProblems);
  const plain = renderErrorBody(statusByCode[code], code, message);
  const body = error instanceof VersionConflict ? { ...plain, ...tellConflict(error) } : plain;
  if (fields.length === 0) return body;
  const rest = more > 0 ? [{ field: "(more)", message: `and ${more} more` }] : [];
  return { ...body, problems: [...fields, ...rest] };
}

function tellConflict({ currentVersion, current }: VersionConflict): Pick<ErrorBody, "current_version" | "current"> {
  return { current_version: currentVersion, ...(current !== undefined && { current }) };
}

/** Headers that go with an error: when to come back, and how to authenticate. */
const headersByCode: Partial<Readonly<Record<ErrorCode, Readonly<Record<string, string>>>>> = {
  store_unavailable: { "retry-after": retryAfterOutage },
  policy_store_unavailable: { "retry-after": retryAfterOutage },
  overloaded: { "retry-after": "1" },
  unauthenticated: { "www-authenticate": 'Bearer realm="sluice"' },
};

export function errorResponse(body: ErrorBody, headers: Readonly<Record<string, string>> = {}): HttpResponse {
  return {
    status: body.status,
    headers: { "content-type": problemType, ...headersByCode[body.code], ...headers },
    body,
  };
}
