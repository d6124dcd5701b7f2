/** `gently` finishes what is in flight. `at once` is for a failed start: no caller relies on the server yet. */
export type Closing = "gently" | "at once";

/**
 * The open parts of a server. Each is added as soon as it is open, and closed before everything it was built upon:
 *
 *     opened   a ──► b ──► c
 *     closed   a ◄── b ◄── c      after a failed start and at the normal end alike
 */
export class OpenParts {
  readonly #closers: ((closing: Closing) => unknown)[] = [];
  #closed: Promise<void> | undefined;

  /** `close` is called once, after every part added later has been closed. */
  add(close: (closing: Closing) => unknown): void {
    this.#closers.push(close);
  }

  /** A second call joins the first. Rejects with the first error, once every part has had its turn. */
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
