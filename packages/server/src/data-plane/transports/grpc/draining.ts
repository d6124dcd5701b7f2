/**
 * Whether the server stops, for calls that would go on for ever. An `AbortSignal` looks through all of its listeners whenever one
 * comes or goes, and tens of thousands of streams may be open.
 */
export class Draining {
  #begun = false;
  readonly #listeners = new Set<() => void>();

  get begun(): boolean {
    return this.#begun;
  }

  /** Calls the listener once, at once if it has begun. Returns the function that withdraws it. */
  onBegin(listener: () => void): () => void {
    if (this.#begun) listener();
    else this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  begin(): void {
    this.#begun = true;
    const listeners = [...this.#listeners];
    this.#listeners.clear();
    for (const listener of listeners) listener();
  }
}
