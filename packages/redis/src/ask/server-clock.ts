/**
 * Estimates a server's clock from the times in its replies. A reply's time was read between sending and receiving, so
 * the difference of the clocks lies between two bounds. The upper one, of the quickest recent exchange, is kept: a
 * deadline by the server's clock is then never too early, and too late by at most that exchange's round trip.
 */
export class ServerClock {
  #aheadMs: number | undefined;
  #roundTripMs = Number.POSITIVE_INFINITY;
  #learntMs = 0;

  /** How far the server's clock is ahead of ours, at most. Undefined before the first exchange. */
  get aheadMs(): number | undefined {
    return this.#aheadMs;
  }

  learn(serverMs: number, sentMs: number, receivedMs: number): void {
    const most = serverMs - sentMs;
    const least = serverMs - receivedMs;
    const known = this.#aheadMs;
    const roundTripMs = receivedMs - sentMs;
    // Outside the bounds, one of the clocks was set. After a minute they may have drifted apart.
    const wrong = known === undefined || known < least || known > most + this.#roundTripMs;
    if (!wrong && roundTripMs > this.#roundTripMs && receivedMs - this.#learntMs < 60_000) return;
    this.#aheadMs = most;
    this.#roundTripMs = roundTripMs;
    this.#learntMs = receivedMs;
  }

  /** The server's time at a local one, in whole milliseconds, rounded up; 0 while it is not known. */
  at(localMs: number): number {
    return this.#aheadMs === undefined ? 0 : Math.ceil(localMs + this.#aheadMs);
  }
}
