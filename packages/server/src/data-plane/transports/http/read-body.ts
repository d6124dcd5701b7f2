import type { IncomingHttpHeaders, IncomingMessage } from "node:http";
import type { ErrorBody } from "@sluice/protocol/http";
import { renderError, renderErrorBody } from "./errors.ts";
import { tooLarge } from "./json-body.ts";

/** The formats of a body. */
export type BodyType = "json" | "yaml";

export interface RefusedBody {
  readonly kind: "refused";
  readonly error: ErrorBody;
  /** Whether not to wait for the rest of it. */
  readonly close: boolean;
}

/** The result of reading a body. */
export type ReadBody =
  | { readonly kind: "read"; readonly body: Buffer | undefined; readonly type: BodyType }
  | RefusedBody;

/**
 * The most bytes of a refused body that are read and dropped. Closing a connection on which they are still being sent
 * may reach the client before the answer does.
 */
const maxDroppedBytes = 4 * 1024 * 1024;

const nothing: ReadBody = { kind: "read", body: undefined, type: "json" };
const jsonOnly: readonly BodyType[] = ["json"];

/**
 * What the headers say about a body, which may be of these types and have at most this many bytes: its type, that there
 * is none, or why it is not read. `untyped`: it is JSON, whatever its content type says.
 */
export function expectBody(
  headers: IncomingHttpHeaders,
  maxBytes: number,
  types: readonly BodyType[] | "untyped" = jsonOnly,
): BodyType | "nothing" | RefusedBody {
  const { "content-length": declared, "transfer-encoding": encoding, "content-type": contentType } = headers;
  const { "content-encoding": coding } = headers;
  if (contentType === undefined && encoding === undefined && (declared === undefined || declared === "0"))
    return "nothing";
  const type = types === "untyped" ? "json" : findBodyType(contentType);
  if (type === undefined || (types !== "untyped" && !types.includes(type)))
    return { kind: "refused", error: ofAnotherType(contentType, types), close: false };
  if (coding !== undefined && coding.toLowerCase() !== "identity")
    return { kind: "refused", error: compressed(coding), close: false };
  if (declared !== undefined && Number(declared) > maxBytes) {
    const close = Number(declared) > maxDroppedBytes;
    return { kind: "refused", error: renderError(tooLarge(Number(declared), maxBytes)), close };
  }
  return type;
}

/** Reads a body, as above, and calls back; never if it breaks off. The usual body is one piece. */
export function readBody(
  request: IncomingMessage,
  maxBytes: number,
  go: (read: ReadBody) => void,
  types?: readonly BodyType[] | "untyped",
): void {
  const type = expectBody(request.headers, maxBytes, types);
  if (typeof type !== "string" || type === "nothing") {
    go(type === "nothing" ? nothing : type);
    return;
  }
  // All pieces so far, joined, with room for the next ones: kept separately, a body of single bytes would take two
  // hundred times its size. How much room is needed in the end is not known beforehand.
  let held: Buffer | undefined;
  let bytes = 0;
  request.on("data", (piece: Buffer) => {
    const at = bytes;
    bytes += piece.length;
    if (bytes > maxBytes) {
      held = undefined;
      if (at <= maxBytes) go({ kind: "refused", error: renderError(tooLarge(undefined, maxBytes)), close: true });
    } else if (held === undefined) held = piece;
    else {
      if (held.length < bytes) held = enlarge(held, bytes);
      piece.copy(held, at);
    }
  });
  request.on("end", () => {
    if (bytes <= maxBytes)
      go({ kind: "read", body: held === undefined ? Buffer.alloc(0) : held.subarray(0, bytes), type });
  });
}

/**
 * The same bytes with room for this many, and for as many again as there were, so that each is moved only a few times.
 */
function enlarge(held: Buffer, bytes: number): Buffer {
  const larger = Buffer.allocUnsafe(Math.max(bytes, 2 * held.length));
  held.copy(larger);
  return larger;
}

/** YAML, including the unofficial names from before it had one. */
function findBodyType(contentType: string | undefined): BodyType | undefined {
  if (contentType === undefined) return undefined;
  if (contentType === "application/json" || /^application\/json[ \t]*(;|$)/i.test(contentType)) return "json";
  return /^(application|text)\/(x-)?yaml[ \t]*(;|$)/i.test(contentType) ? "yaml" : undefined;
}

const writtenOut: Readonly<Record<BodyType, string>> = {
  json: "JSON, with content-type: application/json",
  yaml: "YAML, with content-type: application/yaml",
};

function ofAnotherType(contentType: string | undefined, types: readonly BodyType[] | "untyped"): ErrorBody {
  const said = contentType === undefined ? "has no content-type" : `is ${JSON.stringify(contentType)}`;
  const wanted = (types === "untyped" ? jsonOnly : types).map((type) => writtenOut[type]).join(", or ");
  return renderErrorBody(415, "invalid_request", `the body ${said}; send ${wanted}`);
}

function compressed(coding: string): ErrorBody {
  return renderErrorBody(415, "invalid_request", `the body is in ${JSON.stringify(coding)}; send it as it is`);
}
