import type { Argument } from "./resp-connection.ts";

export type Flavor = "valkey" | "redis";

export const flavors: readonly Flavor[] = ["valkey", "redis"];

export type ServerState = "running" | "paused" | "stopped";

/** A real server on loopback, with a separate folder. It ends with the process that started it, however that ends. */
export interface TestServer {
  readonly flavor: Flavor;
  readonly host: string;
  readonly port: number;
  /** `redis://host:port`, or `rediss://` if it uses TLS. */
  readonly url: string;
  /** Accepts connections without TLS, even if the port accepts TLS only. */
  readonly unixSocket: string;
  readonly folder: string;
  /** Another one after `restart`. */
  readonly pid: number;
  readonly state: ServerState;
  /**
   * Sends one command on a connection that only this object uses, and that stays, so `AUTH` and `SELECT` hold until the
   * server is stopped. Replies are RESP2, strings as UTF-8; an error reply rejects with `ReplyError`. While the server is
   * paused it waits, without end.
   */
  command(...args: readonly Argument[]): Promise<unknown>;
  /** Keeps connections and answers nothing, as a server does that is stuck. */
  pause(): void;
  resume(): void;
  /** Ends it as a crash would, and resolves when it is gone. Without persistence its data is gone as well. */
  kill(): Promise<void>;
  /** Starts it on the same port and folder, after `kill` or instead. */
  restart(): Promise<void>;
  /** Ends it and removes its folder. */
  close(): Promise<void>;
}
