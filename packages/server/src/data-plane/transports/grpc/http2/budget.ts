/**
 * How often a client may do what costs this server work and brings no answer. It holds `burst` at first, regains
 * `perSecond`, and what the client does of use is added to it by `earn`.
 */
export class Budget {
  readonly #burst: number;
  readonly #perMs: number;
  #left: number;
  #atMs: number;

  constructor(burst: number, perSecond: number, nowMs: number) {
    this.#burst = burst;
    this.#perMs = perSecond / 1_000;
    this.#left = burst;
    this.#atMs = nowMs;
  }

  /** Returns false once it is used up. `nowMs` is read only when it may be. */
  take(cost: number, nowMs: () => number): boolean {
    this.#left -= cost;
    if (this.#left >= 0) return true;
    const now = nowMs();
    this.#left = Math.min(this.#burst, this.#left + (now - this.#atMs) * this.#perMs);
    this.#atMs = now;
    return this.#left >= 0;
  }

  earn(gain: number): void {
    if (this.#left < this.#burst) this.#left += gain;
  }
}
