import { constants, type ServerHttp2Stream } from "node:http2";
import type { StatusObject } from "@grpc/grpc-js";

/**
 * Ends a call with a status, and does not wait for the rest of what its client sends. A call whose answer has begun is reset
 * instead, which clients show as `RESOURCE_EXHAUSTED`.
 */
export function refuseStream(stream: ServerHttp2Stream, { code, details, metadata }: StatusObject): void {
  if (stream.destroyed || stream.closed) return;
  if (stream.headersSent) {
    stream.close(constants.NGHTTP2_ENHANCE_YOUR_CALM);
    return;
  }
  const headers = {
    ":status": 200,
    "content-type": "application/grpc+proto",
    "grpc-status": code,
    "grpc-message": encodeURI(details),
    ...metadata?.toHttp2Headers(),
  };
  stream.respond(headers, { endStream: true });
  stream.close(constants.NGHTTP2_NO_ERROR);
}
