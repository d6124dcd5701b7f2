import { setImmediate as nextTurn } from "node:timers/promises";
import { createZstdDecompress, type ZstdDecompress } from "node:zlib";

const chunkBytes = 256 * 1024;

/**
 * Decompresses zstd of any number of frames, as several compressed logs one after the other have. Node's own stream ends
 * after a frame that a chunk goes on after, and drops the rest of the chunk without a word.
 */
export async function* decompressZstd(chunks: AsyncIterable<Buffer>): AsyncIterable<Buffer> {
  let decoder = createZstdDecompress({ chunkSize: chunkBytes });
  /** What the decoder was given of its frame. */
  let given = 0;
  for await (const chunk of chunks) {
    let rest = chunk;
    while (rest.length > 0) {
      given += rest.length;
      yield* writeAndRead(decoder, rest);
      // An end is announced a turn after the last output was read.
      await nextTurn();
      if (!decoder.readableEnded) break;
      rest = rest.subarray(rest.length - (given - decoder.bytesWritten));
      decoder = createZstdDecompress({ chunkSize: chunkBytes });
      given = 0;
    }
  }
  if (given === 0) return;
  // Fails if the last frame is not complete.
  decoder.end();
  for await (const out of decoder) yield out as Buffer;
}

/** Gives the decoder a chunk, and returns what comes out until it has taken all of it that belongs to its frame. */
async function* writeAndRead(decoder: ZstdDecompress, chunk: Buffer): AsyncIterable<Buffer> {
  let isTaken = false;
  let failure: Error | undefined;
  let wake = (): void => {};
  const onReadable = (): void => wake();
  const onError = (error: Error): void => {
    failure = error;
    wake();
  };
  decoder.on("readable", onReadable).on("error", onError);
  decoder.write(chunk, (error) => {
    isTaken = true;
    failure ??= error ?? undefined;
    wake();
  });
  try {
    for (;;) {
      for (let out = decoder.read() as Buffer | null; out !== null; out = decoder.read() as Buffer | null) yield out;
      if (failure !== undefined) throw failure;
      if (isTaken) return;
      await new Promise<void>((resolve) => {
        wake = resolve;
      });
    }
  } finally {
    decoder.off("readable", onReadable).off("error", onError);
  }
}
