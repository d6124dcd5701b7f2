import type { StatusObject } from "@grpc/grpc-js";
import { encodeHeaders } from "./hpack/encode-headers.ts";
import { percentEncode } from "./percent-encode.ts";

type Field = readonly [name: string, value: string];

const begin: readonly Field[] = [
  [":status", "200"],
  ["content-type", "application/grpc+proto"],
];

/** The headers of every answer, and the trailers of every good one. */
export const answerHeaders: Buffer = encodeHeaders(begin);
export const okTrailers: Buffer = encodeHeaders([["grpc-status", "0"]]);

/** The headers of an answer with metadata. */
export function announcedHeaders(metadata: Readonly<Record<string, string>>): Buffer {
  return encodeHeaders([...begin, ...Object.entries(metadata)]);
}

/** The status of a call, as trailers behind its answers, or as all of its answer. */
export function statusTrailers({ code, details, metadata }: StatusObject, isWhole: boolean): Buffer {
  const fields: Field[] = isWhole ? [...begin] : [];
  fields.push(["grpc-status", String(code)]);
  if (details !== "") fields.push(["grpc-message", percentEncode(details)]);
  for (const [name, values] of Object.entries(metadata.toHttp2Headers()))
    for (const value of [values ?? []].flat()) fields.push([name, String(value)]);
  return encodeHeaders(fields);
}

/** An answer to a request that is no call of gRPC. */
export interface PlainAnswer {
  readonly headers: Buffer;
  readonly body: Buffer;
}

function plainAnswer(status: number, text: string, ...more: readonly Field[]): PlainAnswer {
  const fields: readonly Field[] = [[":status", String(status)], ["content-type", "text/plain"], ...more];
  return { headers: encodeHeaders(fields), body: Buffer.from(`${text}\n`) };
}

export const notPost: PlainAnswer = plainAnswer(405, "This port answers gRPC, which is POST alone.", ["allow", "POST"]);
/** To HEAD, whose answers have no body. */
export const notPostHead: PlainAnswer = { ...notPost, body: Buffer.alloc(0) };
export const notGrpc: PlainAnswer = plainAnswer(
  415,
  "This port answers gRPC. Send content-type: application/grpc, and te: trailers.",
);
export const headersTooLarge: PlainAnswer = plainAnswer(431, "The headers of a call have at most 16 KiB.");
