import type { ServerResponse } from "node:http";
import type { AnswerWriter, HttpResponse } from "./exchange.ts";
import { jsonType } from "./render-answer.ts";

/** Writes an answer by Node. */
export class ResponseWriter implements AnswerWriter {
  readonly #response: ServerResponse;

  constructor(response: ServerResponse) {
    this.#response = response;
  }

  get hasWritten(): boolean {
    return this.#response.headersSent;
  }

  /** Names and values go to Node in one array, because an answer about a limit is mostly headers. */
  write({ status, headers, body }: HttpResponse, close: boolean): void {
    const text = body === undefined ? undefined : typeof body === "string" ? body : JSON.stringify(body);
    // Alternating names and values.
    const head = ["cache-control", "no-store"];
    if (text !== undefined) {
      const type = headers?.["content-type"] ?? jsonType;
      head.push("content-type", type, "content-length", String(Buffer.byteLength(text)));
    }
    for (const name in headers) if (name !== "content-type") head.push(name, headers[name]!);
    if (close) head.push("connection", "close");
    this.#response.writeHead(status, head);
    this.#response.end(text);
  }

  destroy(): void {
    this.#response.destroy();
  }
}
