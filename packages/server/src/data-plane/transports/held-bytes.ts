import type { Protocol } from "../../protocol.ts";

/** The most bytes that all connections together make a process hold. */
export const maxHeldBytes: number = 128 * 1024 * 1024;

/** One connection's part. */
export interface Holding {
  /** Bytes held for it now. Setting them may close connections, this one included. */
  bytes: number;
}

/**
 * What connections make a process hold: half-received requests, requests sent ahead, and unread answers. Each
 * connection has separate bounds; this is the bound on all of them together, because ten thousand times a small bound
 * is a large one. Beyond it connections are closed: first those that have held something for longest without ever
 * finishing, and of these only those that hold half of the average or more. A client that sends whole requests and
 * reads its answers holds nothing for longer than a moment.
 */
export class HeldBytes {
  readonly #maxBytes: number;
  /** In the order in which they began to hold something. */
  readonly #holders = new Set<CountedHolding>();
  readonly #onClosed: (protocol: Protocol) => void;
  #total = 0;

  constructor(maxBytes: number = maxHeldBytes, onClosed: (protocol: Protocol) => void = () => {}) {
    this.#maxBytes = maxBytes;
    this.#onClosed = onClosed;
  }

  get total(): number {
    return this.#total;
  }

  /** A connection's part, initially nothing. `close` ends the connection. */
  hold(protocol: Protocol, close: () => void): Holding {
    return new CountedHolding(protocol, close, (holding, change) => {
      this.#total += change;
      if (holding.bytes === 0) this.#holders.delete(holding);
      else if (holding.bytes === change) this.#holders.add(holding);
      if (change > 0 && this.#total > this.#maxBytes) this.#closeOldest();
    });
  }

  #closeOldest(): void {
    for (const holding of this.#holders) {
      if (this.#total <= this.#maxBytes) return;
      if (holding.bytes < this.#total / this.#holders.size / 2) continue;
      holding.close();
      holding.bytes = 0;
      this.#onClosed(holding.protocol);
    }
  }
}

class CountedHolding implements Holding {
  readonly protocol: Protocol;
  readonly close: () => void;
  readonly #onChange: (holding: CountedHolding, change: number) => void;
  #bytes = 0;

  constructor(protocol: Protocol, close: () => void, onChange: (holding: CountedHolding, change: number) => void) {
    this.protocol = protocol;
    this.close = close;
    this.#onChange = onChange;
  }

  get bytes(): number {
    return this.#bytes;
  }

  set bytes(bytes: number) {
    const change = bytes - this.#bytes;
    if (change === 0) return;
    this.#bytes = bytes;
    this.#onChange(this, change);
  }
}
