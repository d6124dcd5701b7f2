import type { IncomingMessage, Server, ServerResponse } from "node:http";
import type { Socket } from "node:net";

/** The connections of a server, and which of them wait for an answer. */
export interface Connections {
  /** Whether connections are to be closed after the answer that is next. */
  readonly draining: boolean;
  /** Closes each connection once nothing waits on it, and all of them in time. Resolves with how many were cut off. */
  drain(withinMs: number): Promise<number>;
}

/** How long connections that wait for nothing stay, for requests that are on their way already. */
const lingerMs = 50;

const unanswered = Symbol("unanswered requests");

interface CountingSocket extends Socket {
  [unanswered]?: number;
}

/**
 * Follows connections by itself: Node takes one that said nothing yet, or half a request line, for a busy one, and would
 * wait for it.
 */
export function followConnections(server: Server): Connections {
  const open = new Set<CountingSocket>();
  let draining = false;
  let lingering = false;
  let whenGone: (() => void) | undefined;

  server.on("connection", (socket: CountingSocket) => {
    socket[unanswered] = 0;
    open.add(socket);
    socket.once("close", () => {
      open.delete(socket);
      if (open.size === 0) whenGone?.();
    });
  });

  function closeIfIdle(socket: CountingSocket): void {
    // Answers that are written are still sent.
    if (socket[unanswered] === 0) socket.destroySoon();
  }

  function onAnswered(this: ServerResponse): void {
    const socket: CountingSocket = this.req.socket;
    socket[unanswered] = (socket[unanswered] ?? 1) - 1;
    if (draining && !lingering) closeIfIdle(socket);
  }

  server.prependListener("request", ({ socket }: IncomingMessage & { socket: CountingSocket }, response) => {
    socket[unanswered] = (socket[unanswered] ?? 0) + 1;
    response.on("close", onAnswered);
  });

  return {
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
        for (const socket of open) closeIfIdle(socket);
      };
      // After the event loop has gone round once more, so that whatever has arrived by then is read.
      const linger = setTimeout(() => setImmediate(closeIdle), Math.min(lingerMs, withinMs));
      const bound = setTimeout(() => {
        for (const socket of open) {
          if (socket[unanswered] !== 0) cut += 1;
          socket.destroy();
        }
      }, withinMs);
      await gone;
      clearTimeout(linger);
      clearTimeout(bound);
      return cut;
    },
  };
}
