import { ApiError } from "./api-error.ts";

/** What to do about an error, by its code. A code without advice is explained well enough by its message. */
const advice: Readonly<Record<string, string>> = {
  unreachable: "Check that the server is running. The console tries again when you reload or return to this page.",
  not_sluice: "A proxy in front of the server may have answered. Try again, or open the admin port directly.",
  unauthenticated: "Sign in again. Your token may have expired or been revoked.",
  permission_denied: "Sign in with a token of that role, or ask an admin to make the change.",
  version_conflict: "Another writer changed it first. Compare both versions, then apply your change to the newer one.",
  already_exists: "Finish or roll back the running rollout, or choose another id.",
  overloaded: "The server is busy. Try again in a few seconds.",
  rate_limited: "You are asking too often. Wait a moment, then try again.",
  not_ready: "The server is starting or stopping. Try again in a few seconds.",
  store_unavailable: "The policy store is unavailable. Limits are still enforced; changes have to wait.",
  policy_store_unavailable: "The policy store is unavailable. Limits are still enforced; changes have to wait.",
  resource_not_found: "It may have been deleted or renamed. Go back to the list and look for it there.",
};

export function adviseOn(error: unknown): string | undefined {
  return error instanceof ApiError ? advice[error.code] : "Reload the page. If it happens again, report the message.";
}

export function errorCode(error: unknown): string {
  return error instanceof ApiError ? error.code : "console_error";
}

export function errorMessage(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** Whether the same request may succeed later without a change. */
export function isTemporary(error: unknown): boolean {
  return error instanceof ApiError && (error.status === 0 || error.status === 429 || error.status >= 500);
}
