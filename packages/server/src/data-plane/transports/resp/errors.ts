import type { ErrorCode } from "sluice";
import { tellError } from "../../service/tell-error.ts";
import { failure } from "./replies.ts";

/**
 * The word that an error begins with, which is what Redis clients tell errors by. None of them is one that clients repeat
 * commands after by themselves, as they do after LOADING or TRYAGAIN.
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

/** What a client is told of an error. */
export function encodeError(error: unknown): string {
  const { code, message } = tellError(error);
  return failure(prefixByCode[code], message);
}
