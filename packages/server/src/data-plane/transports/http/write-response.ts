import type { ServerResponse } from "node:http";
import type { HttpResponse } from "./exchange.ts";

const jsonType = "application/json; charset=utf-8";

/** Writes an answer. Names and values go to Node in one array, because an answer about a limit is mostly headers. */
export function writeResponse(raw: ServerResponse, { status, headers, body }: HttpResponse, close: boolean): void {
  const text = body === undefined ? undefined : typeof body === "string" ? body : JSON.stringify(body);
  // Alternating names and values.
  const head = ["cache-control", "no-store"];
  if (text !== undefined) {
    head.push("content-type", headers?.["content-type"] ?? jsonType, "content-length", String(Buffer.byteLength(text)));
  }
  for (const name in headers) if (name !== "content-type") head.push(name, headers[name]!);
  if (close) head.push("connection", "close");
  raw.writeHead(status, head);
  raw.end(text);
}
