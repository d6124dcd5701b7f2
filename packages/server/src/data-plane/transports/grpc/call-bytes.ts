import type { Turns } from "../turns.ts";

/** How many bytes calls may make this process hold, requests and answers together. */
export interface CallBytesLimits {
  readonly perConnection: number;
  /** Of all connections on which no caller has been identified, together. */
  readonly unknownCallers: number;
  /** Of all others, together. */
  readonly knownCallers: number;
}

/** While a connection has this many bytes of answers to send, its other calls wait. */
const fullUnsentBytes = 8 * 1024 * 1024;

/** What one connection holds. */
export class HeldConnection {
  /** Unanswered requests, unsent answers, and the overhead of open calls. */
  bytes = 0;
  /** The answers among them. */
  unsentBytes = 0;
  /** Calls that are open. */
  calls = 0;
  /** Whether a caller has been identified on it. */
  known = false;
  closed = false;
  /** Calls that wait for earlier answers to be sent, in order of arrival. */
  readonly waiting: Set<{ proceed(): void }> = new Set();
  readonly close: () => void;

  readonly #turns: Pick<Turns, "mayGoOn" | "later">;
  #isProceeding = false;

  constructor(close: () => void, turns: Pick<Turns, "mayGoOn" | "later">) {
    this.close = close;
    this.#turns = turns;
  }

  /** Whether few enough answers are unsent that another call may be answered. */
  get hasRoom(): boolean {
    return this.unsentBytes < fullUnsentBytes;
  }

  /** Starts waiting calls in order, while few enough answers are unsent, by turns with other connections. */
  proceedWaiting(): void {
    // A call that is answered at once comes back to here. After the end of the connection, answers go nowhere.
    if (this.waiting.size === 0 || this.#isProceeding || this.closed) return;
    this.#isProceeding = true;
    for (const call of this.waiting) {
      if (!this.hasRoom || this.closed) break;
      this.waiting.delete(call);
      call.proceed();
      // Thousands may wait, each with a batch of checks.
      if (this.waiting.size === 0 || this.#turns.mayGoOn()) continue;
      this.#turns.later(() => {
        this.#isProceeding = false;
        this.proceedWaiting();
      });
      return;
    }
    this.#isProceeding = false;
  }
}

/**
 * Counts the bytes that connections hold. Each connection has a limit. If all of them together hold too much, the one that
 * holds the most is closed, so a client with little in flight does not pay for others. Connections without an identified
 * caller are counted separately: whatever they do, identified callers keep their room.
 */
export class CallBytes {
  readonly #limits: CallBytesLimits;
  readonly #turns: Pick<Turns, "mayGoOn" | "later">;
  readonly #connections = new Set<HeldConnection>();
  #knownBytes = 0;
  #unknownBytes = 0;

  constructor(limits: CallBytesLimits, turns: Pick<Turns, "mayGoOn" | "later">) {
    this.#limits = limits;
    this.#turns = turns;
  }

  /** Of all connections. */
  get bytes(): number {
    return this.#knownBytes + this.#unknownBytes;
  }

  /** Adds a connection. `close` is called when the process needs its memory back. */
  open(close: () => void): HeldConnection {
    const connection = new HeldConnection(close, this.#turns);
    this.#connections.add(connection);
    return connection;
  }

  /** Adds bytes, or releases them if negative. Returns false if the connection is now above its limit. */
  add(connection: HeldConnection, bytes: number): boolean {
    connection.bytes += bytes;
    if (connection.closed) return false;
    this.#count(connection.known, bytes);
    if (bytes <= 0) return true;
    if (this.#knownBytes > this.#limits.knownCallers) this.#closeHeaviest(true);
    if (this.#unknownBytes > this.#limits.unknownCallers) this.#closeHeaviest(false);
    return connection.bytes <= this.#limits.perConnection;
  }

  /** Records that a caller has been identified on a connection. */
  identify(connection: HeldConnection): void {
    if (connection.known) return;
    connection.known = true;
    if (connection.closed) return;
    this.#count(false, -connection.bytes);
    this.#count(true, connection.bytes);
  }

  /** Forgets a connection, and all that it holds. */
  close(connection: HeldConnection): void {
    if (connection.closed) return;
    connection.closed = true;
    this.#connections.delete(connection);
    this.#count(connection.known, -connection.bytes);
  }

  #count(known: boolean, bytes: number): void {
    if (known) this.#knownBytes += bytes;
    else this.#unknownBytes += bytes;
  }

  #closeHeaviest(known: boolean): void {
    let heaviest: HeldConnection | undefined;
    for (const connection of this.#connections)
      if (connection.known === known && connection.bytes > (heaviest?.bytes ?? 0)) heaviest = connection;
    if (heaviest === undefined) return;
    this.close(heaviest);
    heaviest.close();
  }
}
