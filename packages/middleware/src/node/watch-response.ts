import type { ServerResponse } from "node:http";
import { clientLeft } from "../client-left.ts";
import type { Sent } from "../rate-limit-options.ts";

/** Reports once what was sent, when the answer is sent or its connection closed. */
export function watchResponse(response: ServerResponse, done: (sent: Sent) => void): void {
  // If the client left during the check, the response is closed already.
  if (isGone(response)) {
    done({ status: clientLeft, bytes: 0 });
    return;
  }
  let bytes = 0;
  const { write, end } = response;
  // A HEAD request gets no body, whatever is written.
  if (response.req?.method !== "HEAD") {
    response.write = function counted(this: ServerResponse, ...args: unknown[]): boolean {
      bytes += chunkBytes(args[0], args[1]);
      return Reflect.apply(write, this, args) as boolean;
    } as typeof write;
    response.end = function counted(this: ServerResponse, ...args: unknown[]): ServerResponse {
      response.write = write;
      bytes += chunkBytes(args[0], args[1]);
      return Reflect.apply(end, this, args) as ServerResponse;
    } as typeof end;
  }
  response.once("close", () => done({ status: response.headersSent ? response.statusCode : clientLeft, bytes }));
}

/** An HTTP/2 response does not report this itself. */
function isGone(response: ServerResponse & { readonly stream?: { readonly destroyed: boolean } }): boolean {
  return response.destroyed || response.stream?.destroyed === true;
}

function chunkBytes(chunk: unknown, encoding: unknown): number {
  if (typeof chunk === "string") {
    return Buffer.byteLength(chunk, typeof encoding === "string" ? (encoding as BufferEncoding) : "utf8");
  }
  return chunk instanceof Uint8Array ? chunk.byteLength : 0;
}
