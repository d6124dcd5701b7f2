import { type StatusObject, status } from "@grpc/grpc-js";
import { BadRequest, Status } from "@sluice/protocol/status";
import { type ReportedError, replyFromError } from "../decode-refusal.ts";
import { ExchangeError, type Reply } from "../exchange.ts";

/** The start of grpc-js's message if a call never found a connection, or was refused before any of it was read. */
const neverRead: readonly string[] = [
  "No connection established",
  "Name resolution failed",
  "Stream refused by server",
];

/**
 * The meaning of a call's end for unanswered questions. A Sluice server sends `sluice-code`, or OK, and then has not
 * decided them. Otherwise the end came from somewhere in between.
 */
export function failureFromStatus({ code, details, metadata }: StatusObject): ExchangeError {
  if (code === status.OK) return new ExchangeError("not_asked", "the server ended the stream");
  const reply = replyFromStatus({ code, details, metadata });
  if (reply === undefined) {
    const because = neverRead.some((words) => details.startsWith(words)) ? "not_asked" : "lost";
    return new ExchangeError(because, `${status[code] ?? code}: ${details}`.slice(0, 200));
  }
  if (reply.kind === "refused") return new ExchangeError("refused", details, reply.error);
  return new ExchangeError(reply.kind === "elsewhere" ? "not_asked" : "lost", details);
}

/** A Sluice server's answer to a call. Undefined if the end came from somewhere in between. */
export function replyFromStatus({ details, metadata }: StatusObject): Reply | undefined {
  const [code] = metadata.get("sluice-code");
  if (typeof code !== "string") return undefined;
  return replyFromError({ code, message: details, problems: decodeProblems(metadata) });
}

/** Every invalid field, if the server names them. */
function decodeProblems(metadata: StatusObject["metadata"]): ReportedError["problems"] {
  const [bytes] = metadata.get("grpc-status-details-bin");
  if (!(bytes instanceof Uint8Array)) return [];
  try {
    const detail = Status.decode(bytes).details.find(({ typeUrl }) => typeUrl.endsWith("/google.rpc.BadRequest"));
    if (detail === undefined) return [];
    return BadRequest.decode(detail.value).fieldViolations.map(({ field, description: message }) => ({
      field,
      message,
    }));
  } catch {
    return [];
  }
}
