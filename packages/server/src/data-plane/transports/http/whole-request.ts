import type { IncomingHttpHeaders } from "node:http";

/** A request that arrived in one piece. */
export interface WholeRequest<T> {
  /** What was found for its request line. */
  readonly found: T;
  /** By names in lower case. */
  readonly headers: IncomingHttpHeaders;
  /** Alternating names and values, as received. */
  readonly rawHeaders: string[];
  /** Empty if it has none. */
  readonly body: Buffer;
}

/**
 * Reads a request if that is simple: the piece holds all of it and nothing else, its request line is one of those in
 * the table, and no header changes how it is framed or answered. Undefined otherwise, which means nothing: the request
 * may be valid, and Node's parser reads it. So this may refuse whatever is unusual, and must never read a request
 * differently from Node.
 */
export function readWholeRequest<T>(piece: Buffer, byRequestLine: ReadonlyMap<string, T>): WholeRequest<T> | undefined {
  const text = piece.toString("latin1");
  const lineEnd = text.indexOf("\r\n");
  const found = lineEnd === -1 ? undefined : byRequestLine.get(text.slice(0, lineEnd));
  if (found === undefined) return undefined;
  const head = readHead(piece, text, lineEnd + 2);
  if (head === undefined || head.headers.host === undefined || head.requestBytes !== piece.length) return undefined;
  const { headers, rawHeaders, headBytes } = head;
  return { found, headers, rawHeaders, body: piece.subarray(headBytes) };
}

/**
 * How many bytes the request has that begins with this piece, head and body. Undefined if that is not simple to say, or
 * if the piece does not hold all of its head.
 */
export function measureRequest(piece: Buffer): number | undefined {
  const text = piece.toString("latin1");
  plainRequestLine.lastIndex = 0;
  if (!plainRequestLine.test(text)) return undefined;
  return readHead(piece, text, plainRequestLine.lastIndex)?.requestBytes;
}

interface RequestHead {
  readonly headers: Record<string, string>;
  readonly rawHeaders: string[];
  readonly headBytes: number;
  /** With the body. */
  readonly requestBytes: number;
}

/** The headers, which begin at `from`. Undefined if one of them is Node's business. */
function readHead(piece: Buffer, text: string, from: number): RequestHead | undefined {
  plainHeaders.lastIndex = from;
  if (!plainHeaders.test(text)) return undefined;
  const headBytes = plainHeaders.lastIndex;
  const headers: Record<string, string> = {};
  const rawHeaders: string[] = [];
  for (let at = from; at < headBytes - 2; ) {
    const colon = text.indexOf(":", at);
    const end = text.indexOf("\r\n", colon);
    const rawName = text.slice(at, colon);
    const name = lowerNames.get(rawName) ?? rawName.toLowerCase();
    // A new text: one that is cut out of another keeps that alive, and handlers may keep a value.
    const value = piece.toString("latin1", text.charCodeAt(colon + 1) === space ? colon + 2 : colon + 1, end);
    // Node has rules for values of the same name. What every object has, such as `constructor`, counts as one.
    if (headers[name] !== undefined || nodeHeaders.has(name)) return undefined;
    if (name === "connection" && !/^keep-alive$/i.test(value)) return undefined;
    headers[name] = value;
    rawHeaders.push(rawName, value);
    at = end + 2;
  }
  if (rawHeaders.length > maxNamesAndValues) return undefined;
  const { "content-length": length = "0" } = headers;
  return plainLength.test(length)
    ? { headers, rawHeaders, headBytes, requestBytes: headBytes + Number(length) }
    : undefined;
}

const space = 0x20;
const maxNamesAndValues = 64;

const plainRequestLine = /(?:GET|HEAD|POST|PUT|DELETE) [\x21-\x7e]+ HTTP\/1\.1\r\n/y;

/** Header lines as nearly every client writes them, up to the empty line: no tabs, no further spaces around a value. */
const plainHeaders = /(?:[\w!#$%&'*+.^`|~-]+: ?(?:[\x21-\x7e\x80-\xff]+(?: +[\x21-\x7e\x80-\xff]+)*)?\r\n)+\r\n/y;

const plainLength = /^\d{1,9}$/;

/** Headers by which a request is framed, answered or kept in a way that is Node's business. */
const nodeHeaders: ReadonlySet<string> = new Set([
  "transfer-encoding",
  "trailer",
  "te",
  "expect",
  "upgrade",
  "http2-settings",
  "keep-alive",
  "proxy-connection",
  // Node makes a list of it.
  "set-cookie",
]);

/** Names that clients send with nearly every request, as they write them: a lookup makes no new text. */
const lowerNames: ReadonlyMap<string, string> = new Map(
  ["Host", "User-Agent", "Accept", "Accept-Encoding", "Content-Type", "Content-Length", "Connection", "Authorization"]
    .flatMap((name) => [name, name.toLowerCase()])
    .map((name) => [name, name.toLowerCase()]),
);
