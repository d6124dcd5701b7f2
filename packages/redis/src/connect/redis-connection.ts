/** One part of a command. */
export type RedisArgument = string | Buffer;

/** Where a server listens. */
export type Address =
  | { readonly kind: "tcp"; readonly host: string; readonly port: number }
  | { readonly kind: "unix"; readonly path: string };

/**
 * One connection to one server, all that Sluice needs of a Redis client.
 *
 * - `send` sends one command now, or rejects: it does not wait for a connection, and a command is never sent again,
 *   because it may have been carried out. Error replies reject with an `Error` whose message begins with the server's
 *   code, such as `NOSCRIPT` or `MOVED`.
 * - The connection comes back after a loss, with jittered pauses. `renew` drops it and makes another, for one that is
 *   open and does not answer.
 * - Neither the connection nor its timers keep a process alive: a question that waits for an answer does, with its
 *   deadline.
 */
export interface RedisConnection {
  readonly ready: boolean;
  send(args: readonly RedisArgument[]): Promise<unknown>;
  renew(): void;
  close(): void;
}

/** Called when a connection was made or lost, with the error. */
export interface ConnectionListener {
  onReady(): void;
  onLost(error: Error): void;
}

/** Opens a connection, which begins to connect at once and is `ready` later. */
export type Connect = (address: Address, listener: ConnectionListener) => RedisConnection;

export function renderAddress(address: Address): string {
  if (address.kind === "unix") return address.path;
  return address.host.includes(":") ? `[${address.host}]:${address.port}` : `${address.host}:${address.port}`;
}

/** How long to wait before the next attempt to connect: from 50 ms doubling to 1 s, with a random half of that. */
export function reconnectAfterMs(attempts: number): number {
  const longest = Math.min(50 * 2 ** Math.min(attempts, 10), 1000);
  return Math.round(longest * (0.5 + Math.random() / 2));
}

/** Reconnects after a loss: later each time, until it succeeds. */
export class Reconnecting {
  readonly #reconnect: () => void;
  #timer: NodeJS.Timeout | undefined;
  #attempts = 0;

  constructor(reconnect: () => void) {
    this.#reconnect = reconnect;
  }

  /** Does nothing if an attempt is scheduled already. */
  later(): void {
    if (this.#timer !== undefined) return;
    this.#timer = setTimeout(() => {
      this.#timer = undefined;
      this.#reconnect();
    }, reconnectAfterMs(this.#attempts));
    this.#timer.unref();
    this.#attempts += 1;
  }

  succeeded(): void {
    this.#attempts = 0;
  }

  stop(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
  }
}

/** A client's error. If several addresses of a host were tried, Node's own error has no message. */
export function errorFrom(error: unknown): Error {
  if (!(error instanceof Error)) return new Error(String(error));
  if (error instanceof AggregateError && error.message === "") {
    error.message = error.errors.map((one: unknown) => errorFrom(one).message).join("; ");
  }
  return error;
}
