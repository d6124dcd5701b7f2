import { type ChunkKey, chunkKey, digestBytes, parseTopicKey, type TopicRecord } from "./generation-records.ts";

/** A generation of which the topic has every chunk. */
export interface CompleteGeneration {
  readonly generation: number;
  readonly digest: string;
  /** Compressed. */
  readonly bytes: Buffer;
}

interface SeenGeneration {
  readonly generation: number;
  readonly digest: string;
  readonly count: number;
  readonly chunks: Map<number, Buffer>;
  /** Joined when the last chunk arrives. Undefined: chunks are missing, or do not fit together. */
  complete: CompleteGeneration | undefined;
}

/** Of one store. More can only be left over from writers that stopped halfway; the oldest are forgotten. */
const maxGenerations = 8;
const maxChunkBytes = 4 * 1024 * 1024;

/**
 * What a policy topic says about one store: the latest record of each key, as after compaction. It does not depend on
 * how much of the topic has been compacted, and never shows a generation of which a chunk is missing.
 */
export class TopicView {
  readonly #mark: string;
  readonly #seen = new Map<string, SeenGeneration>();
  #announced: number | undefined;

  constructor(mark: string) {
    this.#mark = mark;
  }

  /** The newest generation that was announced, complete or not. */
  get announced(): number | undefined {
    return this.#announced;
  }

  /** The newest complete generation. */
  get newest(): CompleteGeneration | undefined {
    let newest: CompleteGeneration | undefined;
    // Of the same generation, the one that was written last.
    for (const { complete } of this.#seen.values())
      if (complete !== undefined && complete.generation >= (newest?.generation ?? 0)) newest = complete;
    return newest;
  }

  /** Takes a record in the topic's order. Returns what is new. */
  take({ key, value }: TopicRecord): "announcement" | "generation" | undefined {
    const parsed = parseTopicKey(this.#mark, key);
    if (parsed === undefined) return undefined;
    if (parsed.kind === "generation") {
      const text = value?.toString("latin1") ?? "";
      if (!/^\d{1,15}$/.test(text)) return undefined;
      this.#announced = Number(text);
      return "announcement";
    }
    const before = this.newest;
    if (value === undefined) this.#delete(parsed);
    else if (value.length <= maxChunkBytes) this.#keep(parsed, value);
    const after = this.newest;
    return after === before ? undefined : "generation";
  }

  /** Deletes every other generation that the topic is known to have a chunk of, if it is older, or in any case. */
  superseded(
    by: { readonly generation: number; readonly digest: string },
    everyOther: boolean,
  ): readonly TopicRecord[] {
    return [...this.#seen.values()]
      .filter(({ digest, generation }) => digest !== by.digest && (everyOther || generation <= by.generation))
      .flatMap(({ generation, digest, count, chunks }) =>
        [...chunks.keys()].map((index) => ({
          key: chunkKey(this.#mark, { generation, digest, index, count }),
          value: undefined,
        })),
      );
  }

  #delete({ generation, digest, count, index }: ChunkKey): void {
    const id = renderId(generation, digest, count);
    const seen = this.#seen.get(id);
    if (seen === undefined) return;
    seen.chunks.delete(index);
    seen.complete = undefined;
    if (seen.chunks.size === 0) this.#seen.delete(id);
  }

  #keep({ generation, digest, count, index }: ChunkKey, value: Buffer): void {
    const id = renderId(generation, digest, count);
    const seen = this.#seen.get(id) ?? { generation, digest, count, chunks: new Map(), complete: undefined };
    // Moves to the end: it was written last.
    this.#seen.delete(id);
    this.#seen.set(id, seen);
    if (seen.chunks.get(index)?.equals(value) === true) return;
    // A copy: the record is a part of an answer that may be much larger.
    seen.chunks.set(index, Buffer.from(value));
    seen.complete = seen.chunks.size === count ? join(seen) : undefined;
    this.#forgetOldest();
  }

  #forgetOldest(): void {
    while (this.#seen.size > maxGenerations) {
      const kept = this.newest;
      const oldest = [...this.#seen].find(([, { complete }]) => complete === undefined || complete !== kept);
      if (oldest === undefined) return;
      this.#seen.delete(oldest[0]);
    }
  }
}

/** Undefined if the chunks do not fit together. */
function join({ generation, digest, count, chunks }: SeenGeneration): CompleteGeneration | undefined {
  const bytes = Buffer.concat(Array.from({ length: count }, (_, index) => chunks.get(index)!));
  return digestBytes(bytes) === digest ? { generation, digest, bytes } : undefined;
}

function renderId(generation: number, digest: string, count: number): string {
  return `${generation}/${digest}/${count}`;
}
