/** So many checks of all streams together may be undecided: twice what is on its way to a server of counters at once. */
const together = 512;
/** A stream may have so many however many streams there are, and one batch of any size. */
const leastShare = 64;

/**
 * How many checks of one stream may be undecided before no more of it is read. Who sends without waiting for answers has them read as
 * fast as they come otherwise, and they wait here, behind each other, until it is too late for most. Streams that have something undecided
 * divide the room evenly, so none can take it from another.
 */
export class StreamShares {
  #busy = 0;

  /** A stream has something undecided from now on. */
  begin(): void {
    this.#busy += 1;
  }

  /** And has nothing left. */
  end(): void {
    this.#busy -= 1;
  }

  get share(): number {
    return Math.max(Math.floor(together / Math.max(this.#busy, 1)), leastShare);
  }
}
