import { type StatusObject, status } from "@grpc/grpc-js";
import { BadRequest, Status } from "@sluice/protocol/status";
import { replyFromError, type ToldError } from "../decode-refusal.ts";
import { ExchangeError, type Reply } from "../exchange.ts";

/** How the message of grpc-js begins if a call never found a connection, or was refused before anything of it was read. */
const neverRead: readonly string[] = [
  "No connection established",
  "Name resolution failed",
  "Stream refused by server",
];

/**
 * What the end of a call means for questions that have no answer. A server of Sluice says `sluice-code`, or that all is well, and
 * then has not decided them. Without that the end came from somewhere on the way.
 */
export function failureOfStatus({ code, details, metadata }: StatusObject): ExchangeError {
  if (code === status.OK) return new ExchangeError("not_asked", "the server ended the stream");
  const reply = replyOfStatus({ code, details, metadata });
  if (reply === undefined) {
    const because = neverRead.some((words) => details.startsWith(words)) ? "not_asked" : "lost";
    return new ExchangeError(because, `${status[code] ?? code}: ${details}`.slice(0, 200));
  }
  if (reply.kind === "refused") return new ExchangeError("refused", details, reply.error);
  return new ExchangeError(reply.kind === "elsewhere" ? "not_asked" : "lost", details);
}

/** What a server of Sluice says to a call. Undefined where the end came from somewhere on the way. */
export function replyOfStatus({ details, metadata }: StatusObject): Reply | undefined {
  const [told] = metadata.get("sluice-code");
  if (typeof told !== "string") return undefined;
  return replyFromError({ code: told, message: details, problems: problemsOf(metadata) });
}

/** Every field that is wrong, if the server names them. */
function problemsOf(metadata: StatusObject["metadata"]): ToldError["problems"] {
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
