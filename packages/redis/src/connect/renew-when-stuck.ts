import type { Connect, RedisConnection } from "./redis-connection.ts";

/**
 * Connections that are replaced if they are not ready in time. A network that swallows packets lets a connection open
 * and then never answers anything on it, not even the client's greeting.
 */
export function renewWhenStuck(connect: Connect, afterMs: number): Connect {
  return (address, listener) => {
    let timer: NodeJS.Timeout | undefined;
    let closed = false;
    const look = (): void => {
      if (closed) return;
      if (!connection.ready) {
        connection.renew();
        timer = setTimeout(look, afterMs);
        timer.unref();
      } else timer = undefined;
    };
    const watch = (): void => {
      if (timer !== undefined || closed) return;
      timer = setTimeout(look, afterMs);
      timer.unref();
    };
    const connection: RedisConnection = connect(address, {
      onReady: listener.onReady,
      onLost: (error) => {
        watch();
        listener.onLost(error);
      },
    });
    watch();
    return {
      get ready() {
        return connection.ready;
      },
      send: (args) => connection.send(args),
      renew: () => {
        connection.renew();
        watch();
      },
      close: () => {
        closed = true;
        clearTimeout(timer);
        connection.close();
      },
    };
  };
}
