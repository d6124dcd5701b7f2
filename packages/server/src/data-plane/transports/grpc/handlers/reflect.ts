import type { ServerReflectionRequest, ServerReflectionResponse } from "@sluice/protocol/reflection";
import type { GrpcContext, MessageStream, StreamCodec } from "../method.ts";
import { describe } from "../reflection.ts";

/** Tells which services there are, and what they are made of. */
export function reflect(
  stream: MessageStream,
  codec: StreamCodec<ServerReflectionRequest, ServerReflectionResponse>,
  { draining }: GrpcContext,
): void {
  let ended = false;
  const end = (): void => {
    ended = true;
    stream.end();
  };
  const answer = (bytes: Uint8Array): void => {
    if (ended) return;
    try {
      const described = codec.write(describe(codec.read(bytes)));
      // One question after another: who does not take an answer asks no more.
      stream.pause();
      stream.write(described, () => stream.resume());
    } catch (error) {
      stream.fail(error);
    }
  };
  stream.read(answer, end);
  stream.onOver(draining.onBegin(end));
}
