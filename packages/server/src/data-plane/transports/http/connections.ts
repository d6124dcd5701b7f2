import type { IncomingMessage, Server, ServerResponse } from "node:http";
import type { Socket } from "node:net";
import type { ClientError } from "./client-errors.ts";
import { Connection, type ConnectionShared } from "./connection.ts";

/** The connections of a server, and which of them wait for an answer. */
export interface Connections {
  accept(socket: Socket): void;
  /** Answers a request when those before it on its connection are answered. */
  take(request: IncomingMessage, response: ServerResponse): void;
  /** Hears that an answer was written. */
  onSent(socket: Socket): void;
  /** Answers what is no request when those before it on its connection are answered. */
  fail(error: ClientError, socket: Socket): void;
  /** Whether connections are to be closed after the answer that is next. */
  readonly draining: boolean;
  /** Closes each connection once nothing waits on it, and all of them in time. Resolves with how many were cut off. */
  drain(withinMs: number): Promise<number>;
}

/** How long connections that wait for nothing stay, for requests that are on their way already. */
const lingerMs = 50;

const connectionOf = Symbol("connection");

interface ConnectedSocket extends Socket {
  [connectionOf]?: Connection;
}

/**
 * Follows connections by itself: Node takes one that said nothing yet, or half a request line, for a busy one, and would
 * wait for it.
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
      // A client that has sent everything still hears the answers.
      socket.allowHalfOpen = true;
      server.emit("connection", socket);
      const connection = new Connection(socket, shared);
      socket[connectionOf] = connection;
      open.add(connection);
      looking ??= setInterval(look, lookEveryMs).unref();
      socket.once("close", () => leave(connection));
    },
    take(request, response): void {
      (request.socket as ConnectedSocket)[connectionOf]!.take(request, response);
    },
    onSent(socket: ConnectedSocket): void {
      socket[connectionOf]?.onSent();
    },
    fail(error, socket: ConnectedSocket): void {
      socket[connectionOf]?.fail(error);
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
      // After the event loop has gone round once more, so that whatever has arrived by then is read.
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
