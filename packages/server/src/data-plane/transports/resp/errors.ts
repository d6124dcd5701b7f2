import type { ErrorCode } from "sluice";
import { describeError } from "../../service/describe-error.ts";
import { failure } from "./replies.ts";

/**
 * The word that an error begins with, by which Redis clients distinguish errors. None of them makes clients retry
 * automatically, as LOADING or TRYAGAIN do.
 */
export const prefixByCode: Readonly<Record<ErrorCode, string>> = {
  invalid_request: "ERR",
  invalid_policies: "ERR",
  not_found: "ERR",
  resource_not_found: "ERR",
  version_conflict: "CONFLICT",
  already_exists: "CONFLICT",
  rate_limited: "BUSY",
  body_too_large: "ERR",
  not_local: "ERR",
  not_leasable: "ERR",
  not_holdable: "ERR",
  internal: "ERR",
  policy_not_found: "NOPOLICY",
  idempotency_conflict: "CONFLICT",
  unauthenticated: "NOAUTH",
  permission_denied: "NOPERM",
  overloaded: "BUSY",
  not_ready: "UNAVAILABLE",
  store_unavailable: "UNAVAILABLE",
  policy_store_unavailable: "UNAVAILABLE",
};

/** What a client sees of an error. */
export function encodeError(error: unknown): string {
  const { code, message } = describeError(error);
  return failure(prefixByCode[code], message);
}
