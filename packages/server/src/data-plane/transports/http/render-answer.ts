import type { HttpResponse } from "./exchange.ts";

// Importing `node:http` also loads the HTTP client that `fetch` uses, which leaves its mark on globalThis.
const { STATUS_CODES, validateHeaderValue } = process.getBuiltinModule("node:http");

export const jsonType = "application/json; charset=utf-8";

/**
 * A whole answer as text, the bytes that Node would write for it. Half of the work of Node's response is to find out
 * what the headers say about the body and the connection, which is known here. A body is required unless the status is
 * 204. `keptFor` is for `Keep-Alive`; undefined if the connection is to be closed. Throws if a header's value could not be
 * sent as it is.
 */
export function renderAnswer(
  { status, headers, body }: HttpResponse,
  keptFor: string | undefined,
  nowMs: number,
): string {
  const text = typeof body === "string" ? body : body === undefined ? undefined : JSON.stringify(body);
  let head = statusLine(status);
  if (text !== undefined) {
    const type = headers?.["content-type"];
    if (type !== undefined) checkValue("content-type", type);
    head += `content-type: ${type ?? jsonType}\r\ncontent-length: ${Buffer.byteLength(text)}\r\n`;
  }
  // Names are ours, and values may have been a client's.
  for (const name in headers) {
    if (name === "content-type") continue;
    const value = headers[name]!;
    checkValue(name, value);
    head += `${name}: ${value}\r\n`;
  }
  const date = `Date: ${httpDate(nowMs)}\r\n`;
  const end =
    keptFor === undefined
      ? `connection: close\r\n${date}`
      : `${date}Connection: keep-alive\r\nKeep-Alive: ${keptFor}\r\n`;
  return `${head}${end}\r\n${text ?? ""}`;
}

/** The rule of Node, with its error. */
function checkValue(name: string, value: string): void {
  if (/[^\t\x20-\x7e\x80-\xff]/.test(value)) validateHeaderValue(name, value);
}

const statusLines = new Map<number, string>();

/** The first line of an answer, and the header that all have. */
function statusLine(status: number): string {
  let line = statusLines.get(status);
  if (line === undefined) {
    line = `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? "unknown"}\r\ncache-control: no-store\r\n`;
    statusLines.set(status, line);
  }
  return line;
}

let dateSecond = Number.NaN;
let dateText = "";

/** The time for a `Date` header, written once a second. */
function httpDate(nowMs: number): string {
  const second = Math.floor(nowMs / 1_000);
  if (second !== dateSecond) {
    dateSecond = second;
    dateText = new Date(nowMs).toUTCString();
  }
  return dateText;
}
