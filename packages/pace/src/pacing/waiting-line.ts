/** A member of a line. The line links it in and out; it is in one line at a time. */
export interface Waiter {
  ahead: Waiter | undefined;
  behind: Waiter | undefined;
}

/** First come, first served; leaving from anywhere in the line costs the same however long it is. */
export class WaitingLine<One extends Waiter> {
  #first: One | undefined;
  #last: One | undefined;
  #length = 0;

  get length(): number {
    return this.#length;
  }

  get first(): One | undefined {
    return this.#first;
  }

  get last(): One | undefined {
    return this.#last;
  }

  join(waiter: One): void {
    waiter.ahead = this.#last;
    waiter.behind = undefined;
    if (this.#last === undefined) this.#first = waiter;
    else this.#last.behind = waiter;
    this.#last = waiter;
    this.#length += 1;
  }

  leave(waiter: One): void {
    // Only what `join` linked is in the line, so its neighbours are of its kind.
    const ahead = waiter.ahead as One | undefined;
    const behind = waiter.behind as One | undefined;
    if (ahead === undefined) this.#first = behind;
    else ahead.behind = behind;
    if (behind === undefined) this.#last = ahead;
    else behind.ahead = ahead;
    waiter.ahead = undefined;
    waiter.behind = undefined;
    this.#length -= 1;
  }
}
