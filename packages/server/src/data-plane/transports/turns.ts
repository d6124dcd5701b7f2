/** How long work that clients sent ahead may keep the event loop before everything else has its turn. */
const turnMs = 2;

/**
 * Shares the event loop between connections. What a client sends ahead of its answers runs in steps, and all
 * connections together get two milliseconds of such steps in each turn of the event loop: a client that waits for each
 * answer never waits behind the backlog of those that do not.
 */
export class Turns {
  /** Steps that wait for a later turn, in order of arrival. */
  readonly #waiting: (() => void)[] = [];
  #endsMs = 0;
  #isBegun = false;

  /** Whether the next step may follow at once. If not, pass it to `later`. */
  mayGoOn(): boolean {
    if (this.#waiting.length > 0) return false;
    if (!this.#isBegun) this.#begin();
    return performance.now() < this.#endsMs;
  }

  /** Runs a step in a later turn, behind those that wait already. */
  later(step: () => void): void {
    this.#waiting.push(step);
    if (!this.#isBegun) this.#begin();
  }

  #begin(): void {
    this.#isBegun = true;
    this.#endsMs = performance.now() + turnMs;
    setImmediate(this.#end);
  }

  readonly #end = (): void => {
    this.#isBegun = false;
    const steps = this.#waiting;
    if (steps.length === 0) return;
    this.#begin();
    let done = 0;
    do steps[done++]!();
    while (done < steps.length && performance.now() < this.#endsMs);
    steps.splice(0, done);
  };
}
