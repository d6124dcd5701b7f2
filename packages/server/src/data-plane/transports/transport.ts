import type { Socket } from "node:net";

/** One protocol over connections that somebody else listens for: a door. */
export interface Transport {
  /** Takes over a connection. TLS, where there is any, is done with by then. */
  accept(socket: Socket): void;
  /**
   * Tells clients to go elsewhere, lets what is in flight finish, and closes connections after it. What has not finished by
   * then is cut off; resolves with how many connections that were.
   */
  drain(withinMs: number): Promise<number>;
}
