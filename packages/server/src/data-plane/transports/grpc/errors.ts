import { Metadata, type StatusObject, status } from "@grpc/grpc-js";
import { type Any, BadRequest, ErrorInfo, Status } from "@sluice/protocol/status";
import type { ErrorCode } from "sluice";
import { cutText, type DescribedError, describeError, isOurs as isOurMistake } from "../../service/describe-error.ts";
import { VersionConflict } from "../../service/version-conflict.ts";

/**
 * The status of each code. An unknown policy has one of its own, because callers may go on without that policy; an id that
 * was used for something else is no passing state, and not to be repeated.
 */
export const statusByCode: Readonly<Record<ErrorCode, status>> = {
  invalid_request: status.INVALID_ARGUMENT,
  invalid_policies: status.INVALID_ARGUMENT,
  policy_not_found: status.NOT_FOUND,
  idempotency_conflict: status.FAILED_PRECONDITION,
  not_leasable: status.FAILED_PRECONDITION,
  not_holdable: status.FAILED_PRECONDITION,
  not_found: status.UNIMPLEMENTED,
  resource_not_found: status.NOT_FOUND,
  version_conflict: status.ABORTED,
  already_exists: status.ALREADY_EXISTS,
  rate_limited: status.RESOURCE_EXHAUSTED,
  body_too_large: status.RESOURCE_EXHAUSTED,
  unauthenticated: status.UNAUTHENTICATED,
  permission_denied: status.PERMISSION_DENIED,
  not_ready: status.UNAVAILABLE,
  overloaded: status.UNAVAILABLE,
  store_unavailable: status.UNAVAILABLE,
  policy_store_unavailable: status.UNAVAILABLE,
  not_local: status.INTERNAL,
  internal: status.INTERNAL,
};

/** The caller's patience was over before anything was decided. */
export class DeadlineOver extends Error {
  override readonly name = "DeadlineOver";
}

/** Whether an error is ours, and belongs into the log. */
export function isOurs(error: unknown): boolean {
  return !(error instanceof DeadlineOver) && isOurMistake(error);
}

/** Many clients drop an answer whose trailers have more than 8 KiB altogether, and call it RESOURCE_EXHAUSTED. */
const maxMessageBytes = 1_000;
const maxHeaderBytes = 2_400;
const maxFieldsBytes = 2_400;
const maxDescriptionLength = 200;

/**
 * An error as the end of a call: the trailer `sluice-code` has its code, `grpc-status-details-bin` the same and the fields
 * that are wrong, as many as fit, as `google.rpc.ErrorInfo` and `google.rpc.BadRequest`. Of a conflict of versions, the
 * former has `current_version`.
 */
export function renderStatus(error: unknown): StatusObject {
  const metadata = new Metadata();
  if (error instanceof DeadlineOver) return { code: status.DEADLINE_EXCEEDED, details: error.message, metadata };
  const { code, message: text, fields } = describeError(error);
  const message = fitting(text);
  metadata.set("sluice-code", code);
  const more = error instanceof VersionConflict ? { current_version: String(error.currentVersion) } : {};
  const info = ErrorInfo.encode({ reason: code, domain: "sluice", metadata: more }).finish();
  const details = [packed("ErrorInfo", info)];
  if (fields.length > 0) details.push(packed("BadRequest", encodeBadRequest(fields)));
  const bytes = Status.encode({ code: statusByCode[code], message, details }).finish();
  metadata.set("grpc-status-details-bin", Buffer.from(bytes));
  return { code: statusByCode[code], details: message, metadata };
}

/** As much of a message as its bounds allow: as it is, and as the header `grpc-message`, which has more bytes. */
function fitting(message: string): string {
  let fits = message;
  for (;;) {
    const over = Math.max(Buffer.byteLength(fits) / maxMessageBytes, encodeURI(fits).length / maxHeaderBytes);
    if (over <= 1) return fits;
    fits = cutText(fits, Math.floor(fits.length / over));
  }
}

function encodeBadRequest(fields: DescribedError["fields"]): Uint8Array {
  const fieldViolations: BadRequest["fieldViolations"] = [];
  let bytes = BadRequest.encode({ fieldViolations }).finish();
  for (const { field, message } of fields) {
    fieldViolations.push({ field, description: cutText(message, maxDescriptionLength) });
    const longer = BadRequest.encode({ fieldViolations }).finish();
    if (longer.length > maxFieldsBytes) break;
    bytes = longer;
  }
  return bytes;
}

function packed(name: string, value: Uint8Array): Any {
  return { typeUrl: `type.googleapis.com/google.rpc.${name}`, value };
}
