import { constants, type ServerHttp2Stream } from "node:http2";
import type { StatusObject } from "@grpc/grpc-js";

/**
 * Ends a call with a status, without waiting for the rest of its request. A call whose answer has begun is reset instead,
 * which clients report as `RESOURCE_EXHAUSTED`.
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
