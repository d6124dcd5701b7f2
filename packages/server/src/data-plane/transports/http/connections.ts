import type { IncomingMessage, Server, ServerResponse } from "node:http";
import type { Socket } from "node:net";
import type { ClientError } from "./client-errors.ts";
import { Connection, type ConnectionShared } from "./connection.ts";

/** The connections of a server, and which of them wait for an answer. */
export interface Connections {
  accept(socket: Socket): void;
  /** Answers a request when those before it on its connection are answered. */
  take(request: IncomingMessage, response: ServerResponse): void;
  /** Called when an answer was written. */
  onSent(socket: Socket): void;
  /** Answers what is not a request when those before it on its connection are answered. */
  fail(error: ClientError, socket: Socket): void;
  /** Whether connections are to be closed after their next answer. */
  readonly draining: boolean;
  /** Closes each connection once nothing waits on it, and all of them in time. Resolves with how many were cut off. */
  drain(withinMs: number): Promise<number>;
}

/** How long idle connections stay, for requests that are in transit already. */
const lingerMs = 50;

const connectionKey = Symbol("connection");

interface ConnectedSocket extends Socket {
  [connectionKey]?: Connection;
}

/**
 * Tracks connections itself: Node counts one that has sent nothing yet, or half a request line, as busy, and would wait
 * for it.
 */
export function followConnections(server: Server, options: Omit<ConnectionShared, "onAnswered">): Connections {
  const open = new Set<Connection>();
  const lookEveryMs = Math.min(1_000, options.unreadMs / 4);
  let draining = false;
  let lingering = false;
  let whenGone: (() => void) | undefined;
  let looking: NodeJS.Timeout | undefined;

  const shared: ConnectionShared = {
    ...options,
    onAnswered(connection): void {
      if (draining && !lingering) connection.closeIfIdle();
    },
  };

  /** One timer for all of them, while there are any. */
  function look(): void {
    const nowMs = performance.now();
    for (const connection of open) connection.closeIfUnread(nowMs);
  }

  function leave(connection: Connection): void {
    open.delete(connection);
    if (open.size > 0) return;
    clearInterval(looking);
    looking = undefined;
    whenGone?.();
  }

  return {
    accept(socket: ConnectedSocket): void {
      // A client that has sent everything still gets the answers.
      socket.allowHalfOpen = true;
      server.emit("connection", socket);
      const connection = new Connection(socket, shared);
      socket[connectionKey] = connection;
      open.add(connection);
      looking ??= setInterval(look, lookEveryMs).unref();
      socket.once("close", () => leave(connection));
    },
    take(request, response): void {
      (request.socket as ConnectedSocket)[connectionKey]!.take(request, response);
    },
    onSent(socket: ConnectedSocket): void {
      socket[connectionKey]?.onSent();
    },
    fail(error, socket: ConnectedSocket): void {
      socket[connectionKey]?.fail(error);
    },
    get draining(): boolean {
      return draining;
    },
    async drain(withinMs: number): Promise<number> {
      draining = true;
      lingering = true;
      const gone = new Promise<void>((resolve) => {
        whenGone = resolve;
        if (open.size === 0) resolve();
      });
      let cut = 0;
      const closeIdle = (): void => {
        lingering = false;
        for (const connection of open) connection.closeIfIdle();
      };
      // After one more turn of the event loop, so that whatever has arrived by then is read.
      const linger = setTimeout(() => setImmediate(closeIdle), Math.min(lingerMs, withinMs));
      const bound = setTimeout(() => {
        for (const connection of open) {
          if (!connection.isIdle) cut += 1;
          connection.destroy();
        }
      }, withinMs);
      await gone;
      clearTimeout(linger);
      clearTimeout(bound);
      return cut;
    },
  };
}
