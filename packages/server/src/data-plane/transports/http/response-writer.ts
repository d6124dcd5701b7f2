import type { ServerResponse } from "node:http";
import type { AnswerStream, AnswerWriter, HttpResponse } from "./exchange.ts";
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
    const content =
      body === undefined || typeof body === "string" || Buffer.isBuffer(body) ? body : JSON.stringify(body);
    const head = startHead(headers);
    if (content !== undefined) {
      const length = typeof content === "string" ? Buffer.byteLength(content) : content.length;
      head.push("content-type", headers?.["content-type"] ?? jsonType, "content-length", String(length));
    }
    addHeaders(head, headers);
    if (close) head.push("connection", "close");
    this.#response.writeHead(status, head);
    this.#response.end(content);
  }

  writeStream({ status, headers, stream }: HttpResponse): void {
    const response = this.#response;
    const head = startHead(headers);
    if (headers?.["content-type"] !== undefined) head.push("content-type", headers["content-type"]);
    addHeaders(head, headers);
    // A connection that was kept for hours is not worth keeping for another request.
    head.push("connection", "close");
    response.writeHead(status, head);
    if (response.req.method === "HEAD") {
      response.end();
      return;
    }
    response.flushHeaders();
    stream?.(answerStream(response));
  }

  destroy(): void {
    this.#response.destroy();
  }
}

/** Alternating names and values. */
function startHead(headers: HttpResponse["headers"]): string[] {
  return ["cache-control", headers?.["cache-control"] ?? "no-store"];
}

function addHeaders(head: string[], headers: HttpResponse["headers"]): void {
  for (const name in headers) if (name !== "content-type" && name !== "cache-control") head.push(name, headers[name]!);
}

function answerStream(response: ServerResponse): AnswerStream {
  return {
    write(text): void {
      if (!response.destroyed && !response.writableEnded) response.write(text);
    },
    get unreadBytes(): number {
      return response.writableLength + (response.socket?.writableLength ?? 0);
    },
    end(): void {
      response.end();
    },
    destroy(): void {
      response.destroy();
    },
    onClose(listener): void {
      if (response.closed) listener();
      else response.once("close", listener);
    },
  };
}
