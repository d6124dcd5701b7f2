import type { Socket } from "node:net";
import { problemType, renderErrorBody } from "./errors.ts";

export const maxHeaderBytes: number = 16 * 1024;
export const maxHeaders = 100;

/** The code for requests sent ahead after one with `Upgrade`. */
export const behindUpgrade = "BEHIND_UPGRADE";

/** Answers what never became a request: malformed, too long or too slow. */
export function answerClientError(error: ClientError, socket: Socket): void {
  if (error.code === "ECONNRESET" || socket.destroyed || !socket.writable) {
    socket.destroy();
    return;
  }
  const [status, text] = clientErrors[error.code ?? ""] ?? [400, "this is not an HTTP/1.1 request"];
  const detail = typeof text === "string" ? text : text(error, socket);
  const { title, ...rest } = renderErrorBody(status, "invalid_request", detail);
  const body = JSON.stringify({ title, ...rest });
  socket.end(
    `HTTP/1.1 ${status} ${title}\r\ncontent-type: ${problemType}\r\ncontent-length: ${Buffer.byteLength(body)}\r\nconnection: close\r\n\r\n${body}`,
  );
}

/** The error that the parser of Node's HTTP server throws. */
export interface ClientError {
  readonly code?: string;
  /** The chunk that it failed on. A `Buffer`. */
  readonly rawPacket?: unknown;
}

type Detail = string | ((error: ClientError, socket: Socket) => string);

const clientErrors: Readonly<Record<string, readonly [status: number, detail: Detail]>> = {
  ERR_HTTP_REQUEST_TIMEOUT: [408, "the request did not arrive in time"],
  HPE_HEADER_OVERFLOW: [431, describeOverflow],
  [behindUpgrade]: [400, "nothing may follow a request with Upgrade before it is answered"],
  HPE_CHUNK_EXTENSIONS_OVERFLOW: [413, "the chunk extensions are too large"],
};

/** Node has one error for two bounds; the one on bytes cannot be reached with fewer bytes than that. */
function describeOverflow({ rawPacket }: ClientError, socket: Socket): string {
  const lines = Buffer.isBuffer(rawPacket) ? rawPacket.toString("latin1").split("\n").length : 0;
  return lines > maxHeaders || socket.bytesRead < maxHeaderBytes
    ? `there are more than ${maxHeaders} headers; at most ${maxHeaders} are allowed`
    : "the request line and headers have more than 16 KiB together; at most 16 KiB are allowed";
}
