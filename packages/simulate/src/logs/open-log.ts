import { createReadStream } from "node:fs";
import { stat } from "node:fs/promises";
import { Readable } from "node:stream";
import { createGunzip } from "node:zlib";
import { decompressZstd } from "./decompress-zstd.ts";

/** A log to read: a file, or what comes from a pipe. */
export interface LogSource {
  readonly name: string;
  /** How many bytes it has, if that is known. */
  readonly bytes: number | undefined;
  /** Its bytes as they are stored. */
  open(): AsyncIterable<Buffer>;
}

const chunkBytes = 256 * 1024;

export async function fileSource(path: string): Promise<LogSource> {
  const found = await stat(path);
  if (found.isDirectory()) throw new RangeError(`${path} is a folder; name the files in it`);
  return {
    name: path,
    bytes: found.isFile() ? found.size : undefined,
    open: () => createReadStream(path, { highWaterMark: chunkBytes }),
  };
}

/** `stream` is read as bytes. */
export function streamSource(name: string, stream: AsyncIterable<Buffer | string>): LogSource {
  return { name, bytes: undefined, open: () => toBuffers(stream) };
}

async function* toBuffers(stream: AsyncIterable<Buffer | string>): AsyncIterable<Buffer> {
  for await (const chunk of stream) yield typeof chunk === "string" ? Buffer.from(chunk) : chunk;
}

const gzipMagic = Buffer.from([0x1f, 0x8b]);
const zstdMagic = Buffer.from([0x28, 0xb5, 0x2f, 0xfd]);

/** The bytes of a log, decompressed if they are gzip or zstd, whatever the file is called. */
export async function* readBytes(source: LogSource, onRead: (bytes: number) => void): AsyncIterable<Buffer> {
  const stored = countBytes(source.open(), onRead);
  const iterator = stored[Symbol.asyncIterator]();
  const first = await readAtLeast(iterator, zstdMagic.length);
  const whole = continueWith(first, iterator);
  if (startsWith(first, zstdMagic)) yield* decompressZstd(whole);
  else if (startsWith(first, gzipMagic)) yield* decompressGzip(whole);
  else yield* whole;
}

async function* decompressGzip(chunks: AsyncIterable<Buffer>): AsyncIterable<Buffer> {
  const decoder = createGunzip({ chunkSize: chunkBytes });
  const input = Readable.from(chunks, { objectMode: false });
  input.on("error", (error) => decoder.destroy(error));
  for await (const chunk of input.pipe(decoder)) yield chunk as Buffer;
}

async function* countBytes(chunks: AsyncIterable<Buffer>, onRead: (bytes: number) => void): AsyncIterable<Buffer> {
  for await (const chunk of chunks) {
    onRead(chunk.length);
    yield chunk;
  }
}

/** A pipe may hand over its first bytes one by one. */
async function readAtLeast(chunks: AsyncIterator<Buffer>, bytes: number): Promise<Buffer> {
  let first: Buffer = Buffer.alloc(0);
  while (first.length < bytes) {
    const { done, value } = await chunks.next();
    if (done === true) break;
    first = first.length === 0 ? value : Buffer.concat([first, value]);
  }
  return first;
}

async function* continueWith(first: Buffer, rest: AsyncIterator<Buffer>): AsyncIterable<Buffer> {
  if (first.length > 0) yield first;
  try {
    for (let next = await rest.next(); next.done !== true; next = await rest.next()) yield next.value;
  } finally {
    await rest.return?.();
  }
}

function startsWith(bytes: Buffer, magic: Buffer): boolean {
  return bytes.subarray(0, magic.length).equals(magic);
}
