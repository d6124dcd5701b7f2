import { createHash } from "node:crypto";
import { promisify } from "node:util";
import { gunzip, gzip } from "node:zlib";
import type { StoredGeneration } from "../documents/stored-generation.ts";

/*
 * A policy topic is compacted: of each key it keeps the latest record. The records of one store in it:
 *
 *     <mark>/generation                              the newest generation that was announced
 *     <mark>/policies/<generation>/<digest>/<i>-<n>  chunk i of n of that generation, compressed
 *
 * `mark` stands for the store, so that several stores can share a topic. A key of a chunk names its content, so a chunk
 * is never overwritten by another one: a generation that was written completely stays complete, whatever others write
 * or leave unfinished, until it is deleted because a complete newer one exists.
 */

/** A record to write, or one that was read. Undefined: the key is deleted. */
export interface TopicRecord {
  readonly key: string;
  readonly value: Buffer | undefined;
}

/** A generation as it is written: its chunks, in order. */
export interface Publication {
  readonly generation: number;
  readonly digest: string;
  readonly records: readonly TopicRecord[];
}

/** What a key says about its record. */
export type TopicKey = { readonly kind: "generation" } | ({ readonly kind: "chunk" } & ChunkKey);

export interface ChunkKey {
  readonly generation: number;
  /** Of all chunks together. */
  readonly digest: string;
  readonly index: number;
  readonly count: number;
}

/** Half of what a broker accepts in one message if it is not configured. */
export const chunkBytes: number = 512 * 1024;
/** 32 MiB compressed: a hundred thousand policies. */
export const maxChunks = 64;
/** What a generation may be decompressed to: as much as a snapshot on disk. */
const maxTextBytes = 256 * 1024 * 1024;

const format = 1;
const compress = promisify(gzip);
const decompress = promisify(gunzip);

/** Stands for a store in the keys of its records. `where` is its address, without user and password. */
export function markStore(where: string): string {
  return createHash("sha256").update(where).digest("hex").slice(0, 12);
}

export function announcedKey(mark: string): string {
  return `${mark}/generation`;
}

export function chunkKey(mark: string, { generation, digest, index, count }: ChunkKey): string {
  return `${mark}/policies/${generation}/${digest}/${index}-${count}`;
}

const chunkPattern = /^policies\/(\d{1,15})\/([\da-f]{32})\/(\d{1,2})-(\d{1,2})$/;

/** Undefined if it is another store's key, or none of ours. */
export function parseTopicKey(mark: string, key: string): TopicKey | undefined {
  if (!key.startsWith(`${mark}/`)) return undefined;
  const rest = key.slice(mark.length + 1);
  if (rest === "generation") return { kind: "generation" };
  const found = chunkPattern.exec(rest);
  if (found === null) return undefined;
  const [, generation, digest = "", index, count] = found;
  const chunk = { generation: Number(generation), digest, index: Number(index), count: Number(count) };
  return chunk.index < chunk.count && chunk.count <= maxChunks ? { kind: "chunk", ...chunk } : undefined;
}

/** Throws if the generation is too large for a topic. */
export async function encodeGeneration(
  mark: string,
  stored: StoredGeneration,
  bytesPerChunk: number = chunkBytes,
): Promise<Publication> {
  const bytes = await compress(JSON.stringify({ sluice_generation: format, stored }));
  const count = Math.ceil(bytes.length / bytesPerChunk);
  if (count > maxChunks)
    throw new Error(`generation ${stored.generation} has ${bytes.length} bytes; ${maxChunks * bytesPerChunk} fit`);
  const { generation } = stored;
  const digest = digestBytes(bytes);
  const records = Array.from({ length: count }, (_, index) => ({
    key: chunkKey(mark, { generation, digest, index, count }),
    value: bytes.subarray(index * bytesPerChunk, (index + 1) * bytesPerChunk),
  }));
  return { generation, digest, records };
}

/** The content of all chunks, in order. Throws the reason if it cannot be used. */
export async function decodeGeneration(bytes: Buffer, generation: number): Promise<StoredGeneration> {
  const text = await decompress(bytes, { maxOutputLength: maxTextBytes });
  const value = JSON.parse(text.toString("utf8")) as { sluice_generation?: unknown; stored?: StoredGeneration };
  if (value.sluice_generation !== format) throw new Error("was written by another version of Sluice");
  if (value.stored?.generation !== generation) throw new Error("is not the generation that its key names");
  return value.stored;
}

export function digestBytes(bytes: Buffer): string {
  return createHash("sha256").update(bytes).digest("hex").slice(0, 32);
}
