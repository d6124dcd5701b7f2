/** How many bytes calls may make this process hold, requests and answers together. */
export interface HeldBytesLimits {
  readonly perConnection: number;
  /** Of all connections on which no caller has been identified, together. */
  readonly unknownCallers: number;
  /** Of all others, together. */
  readonly knownCallers: number;
}

/** What one connection holds. */
export class HeldConnection {
  /** Requests that were received and not answered, answers that were not sent, and what calls cost by being open. */
  bytes = 0;
  /** The answers among them. */
  unsentBytes = 0;
  /** Calls that are open. */
  calls = 0;
  /** Whether a caller has been identified on it. */
  known = false;
  closed = false;
  /** Calls that begin when earlier answers have been sent, in their order. */
  readonly waiting: Set<{ proceed(): void }> = new Set();
  readonly close: () => void;

  constructor(close: () => void) {
    this.close = close;
  }
}

/**
 * Keeps count of what connections hold. A connection may hold so much; where all of them hold too much together, those that hold the
 * most are closed, so a client with little under way is not the one that pays for it. Connections on which no caller
 * has been identified are counted apart: whatever they do, callers that are known keep their room.
 */
export class HeldBytes {
  readonly #limits: HeldBytesLimits;
  readonly #connections = new Set<HeldConnection>();
  #knownBytes = 0;
  #unknownBytes = 0;

  constructor(limits: HeldBytesLimits) {
    this.#limits = limits;
  }

  /** Of all connections. */
  get bytes(): number {
    return this.#knownBytes + this.#unknownBytes;
  }

  /** A new connection. `close` is called when it holds too much for this process. */
  open(close: () => void): HeldConnection {
    const connection = new HeldConnection(close);
    this.#connections.add(connection);
    return connection;
  }

  /** Holds more, or less. Returns false where the connection now holds more than one may. */
  add(connection: HeldConnection, bytes: number): boolean {
    connection.bytes += bytes;
    if (connection.closed) return false;
    this.#count(connection.known, bytes);
    if (bytes <= 0) return true;
    if (this.#knownBytes > this.#limits.knownCallers) this.#closeHeaviest(true);
    if (this.#unknownBytes > this.#limits.unknownCallers) this.#closeHeaviest(false);
    return connection.bytes <= this.#limits.perConnection;
  }

  /** A caller has been identified on a connection. */
  identify(connection: HeldConnection): void {
    if (connection.known) return;
    connection.known = true;
    if (connection.closed) return;
    this.#count(false, -connection.bytes);
    this.#count(true, connection.bytes);
  }

  /** A connection is gone, and holds nothing. */
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
