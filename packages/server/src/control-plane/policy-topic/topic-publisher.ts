import type { StoredGeneration } from "../documents/stored-generation.ts";
import type { PolicyTopic } from "./policy-topic.ts";

export interface TopicPublisherOptions {
  readonly topic: Pick<PolicyTopic, "connected" | "generation" | "publish">;
  /** What this node has read from the store, if that is the store's newest as far as it knows. */
  readonly read: () => StoredGeneration | undefined;
  /** A monotonic clock. */
  readonly steadyMs?: (() => number) | undefined;
  /** From 0 to 1. */
  readonly random?: (() => number) | undefined;
}

const checkEveryMs = 1_000;
/**
 * How long the topic may differ from the store before any node corrects it. Nodes wait for different times, so that one
 * does it. Longer than a store is given to catch up after it showed an older generation.
 */
const correctAfterMs = { least: 12_000, most: 24_000 } as const;

/**
 * Writes generations to a topic:
 *
 *     a change by this node ──applied here──► written at once
 *     the topic differs from the store ──after a while──► corrected, by whichever node waited least
 *
 * The second way fills an empty topic, and repairs what a node left out that stopped, or could not reach the brokers.
 */
export class TopicPublisher {
  readonly #options: TopicPublisherOptions;
  readonly #steadyMs: () => number;
  readonly #random: () => number;
  /** A generation that this node has made, and not applied yet. */
  #changed: number | undefined;
  #differs: { readonly sinceMs: number; readonly waitMs: number } | undefined;
  #writing: Promise<unknown> | undefined;
  #next: StoredGeneration | undefined;
  #timer: NodeJS.Timeout | undefined;

  constructor(options: TopicPublisherOptions) {
    this.#options = options;
    this.#steadyMs = options.steadyMs ?? ((): number => performance.now());
    this.#random = options.random ?? Math.random;
  }

  start(): void {
    this.#timer = setInterval(() => this.check(), checkEveryMs).unref();
  }

  close(): void {
    clearInterval(this.#timer);
    this.#next = undefined;
  }

  /** This node has changed the store. */
  changed(generation: number): void {
    this.#changed = Math.max(generation, this.#changed ?? 0);
  }

  /** This node has applied a generation of the store. */
  applied(stored: StoredGeneration): void {
    if (this.#changed === undefined || stored.generation < this.#changed) return;
    this.#changed = undefined;
    // Another node was faster, with this change or a later one.
    if (stored.generation > (this.#options.topic.generation ?? 0)) this.#write(stored, false);
  }

  /** Corrects the topic if it has differed for long enough. */
  check(): void {
    const { topic, read } = this.#options;
    const stored = read();
    // A store without any change has nothing to tell.
    const isSame = stored === undefined || stored.generation === 0 || stored.generation === topic.generation;
    if (isSame || !topic.connected || this.#writing !== undefined) {
      this.#differs = undefined;
      return;
    }
    const { least, most } = correctAfterMs;
    this.#differs ??= { sinceMs: this.#steadyMs(), waitMs: least + this.#random() * (most - least) };
    if (this.#steadyMs() - this.#differs.sinceMs < this.#differs.waitMs) return;
    this.#differs = undefined;
    this.#write(stored, stored.generation < (topic.generation ?? 0));
  }

  /** One at a time, and of several that wait only the last. */
  #write(stored: StoredGeneration, wentBack: boolean): void {
    if (this.#writing !== undefined) {
      this.#next = stored;
      return;
    }
    this.#writing = this.#options.topic.publish(stored, { wentBack }).finally(() => {
      this.#writing = undefined;
      const next = this.#next;
      this.#next = undefined;
      if (next !== undefined) this.#write(next, false);
    });
  }
}
