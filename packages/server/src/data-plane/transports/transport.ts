import type { Socket } from "node:net";

/** One protocol over connections that a door listens for. */
export interface Transport {
  /** Takes over a connection. Its TLS handshake, if any, is done by then. */
  accept(socket: Socket): void;
  /**
   * Asks clients to go to another server, lets what is in flight finish, and closes connections after it. What has not
   * finished in time is cut off; resolves with how many connections that were.
   */
  drain(withinMs: number): Promise<number>;
}
