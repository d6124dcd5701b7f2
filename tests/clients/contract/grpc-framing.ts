import type { Fields, Outcome, RawAnswer } from "./contract-client.ts";

/** A message as gRPC frames it. `flag` is 1 for a compressed one. */
export function frameMessage(message: Uint8Array, flag = 0): Buffer {
  const head = Buffer.alloc(5);
  head[0] = flag;
  head.writeUInt32BE(message.length, 1);
  return Buffer.concat([head, message]);
}

/** The messages of a body. Throws if it ends within one. */
export function splitMessages(body: Uint8Array): readonly Uint8Array[] {
  const bytes = Buffer.from(body);
  const messages: Uint8Array[] = [];
  for (let at = 0; at < bytes.length; ) {
    if (at + 5 > bytes.length) throw new Error("the body ends within the head of a message");
    const end = at + 5 + bytes.readUInt32BE(at + 1);
    if (bytes[at] !== 0) throw new Error("the answer is compressed, and was not asked to be");
    if (end > bytes.length) throw new Error("the body ends within a message");
    messages.push(bytes.subarray(at + 5, end));
    at = end;
  }
  return messages;
}

/** How a call ended, for a client that shows HTTP alone. */
export function outcomeFromAnswer({ headers, trailers, body }: RawAnswer): Outcome {
  const trailersOnly = "grpc-status" in headers;
  const end = trailersOnly ? headers : trailers;
  const code = end["grpc-status"];
  return {
    code: code === undefined ? -1 : Number(code),
    message: decodeURIComponent(end["grpc-message"] ?? ""),
    responses: code === undefined ? [] : splitMessages(body),
    headers: trailersOnly ? {} : headers,
    trailers: withEvenBase64(end),
    trailersOnly,
  };
}

/** Base64 may leave its padding out; comparing needs one form. */
export function withEvenBase64(fields: Fields): Fields {
  return Object.fromEntries(
    Object.entries(fields).map(([name, value]) => [
      name,
      name.endsWith("-bin") ? Buffer.from(value, "base64").toString("base64") : value,
    ]),
  );
}
