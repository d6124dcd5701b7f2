/** `gently` finishes what is in flight. `at once` is for a start that failed: no caller relies on the server yet. */
export type Closing = "gently" | "at once";

/**
 * The parts of a server that are open. Each is added as soon as it is, and closed before all that it was built upon:
 *
 *     opened   a ──► b ──► c
 *     closed   a ◄── b ◄── c      after a failed start and at the normal end alike
 */
export class OpenParts {
  readonly #closers: ((closing: Closing) => unknown)[] = [];
  #closed: Promise<void> | undefined;

  /** `close` is called once, after every part that is added later has been closed. */
  add(close: (closing: Closing) => unknown): void {
    this.#closers.push(close);
  }

  /** Asked again, it is the same closing. Rejects with the first error, once every part has had its turn. */
  close(closing: Closing): Promise<void> {
    this.#closed ??= this.#closeAll(closing);
    return this.#closed;
  }

  async #closeAll(closing: Closing): Promise<void> {
    const errors: unknown[] = [];
    for (const close of this.#closers.reverse()) {
      try {
        await close(closing);
      } catch (error) {
        errors.push(error);
      }
    }
    if (errors.length > 0) throw errors[0];
  }
}
