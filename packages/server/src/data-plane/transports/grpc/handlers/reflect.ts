import type { ServerDuplexStream } from "@grpc/grpc-js";
import type { ServerReflectionRequest, ServerReflectionResponse } from "@sluice/protocol/reflection";
import type { GrpcContext, StreamCodec } from "../method.ts";
import { describe } from "../reflection.ts";

/** Tells which services there are, and what they are made of. */
export function reflect(
  stream: ServerDuplexStream<Uint8Array, Uint8Array>,
  codec: StreamCodec<ServerReflectionRequest, ServerReflectionResponse>,
  { draining }: GrpcContext,
): void {
  const end = (): unknown => stream.end();
  const stop = (): void => draining.removeEventListener("abort", end);
  stream.on("data", (bytes: Uint8Array) => {
    if (stream.writableEnded) return;
    try {
      const answer = codec.write(describe(codec.read(bytes)));
      // One question after another: who does not take an answer asks no more.
      stream.pause();
      stream.write(answer, () => stream.resume());
    } catch (error) {
      stream.emit("error", codec.tell(error));
    }
  });
  stream.on("end", end);
  stream.on("cancelled", stop);
  stream.on("close", stop);
  draining.addEventListener("abort", end, { once: true });
  if (draining.aborted) end();
}
