import type { Connect, RedisConnection } from "./redis-connection.ts";

/** How long a connection that was replaced may take to answer what it was asked. */
const drainWithinMs = 30_000;

/**
 * Connections of which none gets older than `maxAgeMs`. Another one is opened beside it, a little sooner and not by all processes at
 * once. When that is ready it is sent everything from then on, and the old one is closed when it has answered what it was asked: nothing
 * fails and nothing is sent twice. Where no other can be opened within `withinMs` the old one stays, and it is tried again.
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
          // It is made anew by its client, and its age begins with that.
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
