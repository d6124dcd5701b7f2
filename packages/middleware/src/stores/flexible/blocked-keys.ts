import { subjectFromKey } from "../subject-from-key.ts";

const maxKeys = 100_000;

/** Keys that this process denies locally for a time: the latest hundred thousand, without timers. */
export class BlockedKeys {
  readonly #untilMs = new Map<string, number>();

  msLeft(key: string): number {
    const untilMs = this.#untilMs.get(subjectFromKey(key));
    if (untilMs === undefined) return 0;
    const leftMs = Math.ceil(untilMs - performance.now());
    if (leftMs <= 0) this.delete(key);
    return Math.max(leftMs, 0);
  }

  add(key: string, forMs: number): void {
    this.delete(key);
    if (this.#untilMs.size >= maxKeys) {
      for (const oldest of this.#untilMs.keys()) {
        this.#untilMs.delete(oldest);
        break;
      }
    }
    this.#untilMs.set(subjectFromKey(key), performance.now() + forMs);
  }

  delete(key: string): void {
    this.#untilMs.delete(subjectFromKey(key));
  }

  clear(): void {
    this.#untilMs.clear();
  }
}
