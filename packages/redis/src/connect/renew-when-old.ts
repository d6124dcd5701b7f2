import type { Connect, RedisConnection } from "./redis-connection.ts";

/** How long a replaced connection may take to answer its pending commands. */
const drainWithinMs = 30_000;

/**
 * Connections that never get older than `maxAgeMs`. A second one is opened a little earlier, and not by all processes
 * at once. Once it is ready, everything is sent on it, and the old one is closed when it has answered its pending
 * commands: nothing fails and nothing is sent twice. If no second one can be opened within `withinMs`, the old one
 * stays, and it is tried again.
 */
export function renewWhenOld(connect: Connect, maxAgeMs: number, withinMs: number): Connect {
  return (address, listener) => {
    let closed = false;
    let timer: NodeJS.Timeout | undefined;
    let next: RedisConnection | undefined;
    const draining = new Map<RedisConnection, NodeJS.Timeout>();

    function open(): RedisConnection {
      const connection: RedisConnection = connect(address, {
        onReady: () => {
          if (closed || (connection !== current && connection !== next)) return;
          if (connection === next) useNext(connection);
          startAging();
          listener.onReady();
        },
        onLost: (error) => {
          if (connection !== current) return;
          // Its client reconnects, and its age starts over.
          dropNext();
          listener.onLost(error);
        },
      });
      return connection;
    }

    function callLater(ms: number, call: () => void): void {
      clearTimeout(timer);
      timer = setTimeout(call, ms);
      timer.unref();
    }

    function startAging(): void {
      callLater(maxAgeMs * (0.9 + 0.1 * Math.random()), replace);
    }

    function replace(): void {
      if (closed || !current.ready) return;
      dropNext();
      next = open();
      callLater(withinMs, () => {
        dropNext();
        callLater(Math.min(maxAgeMs, withinMs), replace);
      });
    }

    function useNext(connection: RedisConnection): void {
      const old = current;
      next = undefined;
      current = connection;
      const end = (): void => {
        clearTimeout(draining.get(old));
        draining.delete(old);
        old.close();
      };
      const latest = setTimeout(end, drainWithinMs);
      latest.unref();
      draining.set(old, latest);
      // Replies come in order: after this one, none is missing.
      old.send(["PING"]).then(end, end);
    }

    function dropNext(): void {
      next?.close();
      next = undefined;
    }

    let current = open();
    return {
      get ready() {
        return current.ready;
      },
      send: (args) => current.send(args),
      renew: () => {
        clearTimeout(timer);
        dropNext();
        current.renew();
      },
      close: () => {
        closed = true;
        clearTimeout(timer);
        dropNext();
        for (const [old, latest] of draining) {
          clearTimeout(latest);
          old.close();
        }
        draining.clear();
        current.close();
      },
    };
  };
}
