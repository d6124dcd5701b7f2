import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";
import { loopback } from "./find-free-port.ts";

/** A TCP proxy that breaks connections on demand. It knows nothing of the protocol, so TLS passes as well. */
export interface FaultyProxy {
  readonly port: number;
  /** `redis://host:port`. */
  readonly url: string;
  /** Added to each piece of reply; their order stays. */
  delayMs: number;
  /**
   * Swallows everything in both directions and closes nothing, as a network does that lost its way. A connection that
   * lost something stays so after `heal`: there is nothing right left to say on it.
   */
  blackhole(): void;
  /** Ends every fault. Replies that are being delayed go out at once. */
  heal(): void;
  /** Resets every connection. New ones are taken. */
  resetAll(): void;
  /** Resets every new connection, and leaves the others alone. */
  refuse(): void;
  /** Resets a connection instead of forwarding the next piece of reply, `count` times: the server did the work. */
  dropRepliesOnce(count?: number): void;
  /** Open now, between client and proxy. */
  readonly connections: number;
  /** Forwarded since the start. */
  readonly bytesToServer: number;
  /** Lost in the black hole since the start, in both directions. */
  readonly bytesSwallowed: number;
  close(): Promise<void>;
}

interface Link {
  readonly client: Socket;
  readonly upstream: Socket;
  /** The actions toward the client, in this order. */
  readonly delayed: { readonly act: () => void; readonly timer: NodeJS.Timeout }[];
  lastDueMs: number;
  /** Something was swallowed. */
  lost: boolean;
}

export async function createFaultyProxy(target: {
  readonly host: string;
  readonly port: number;
}): Promise<FaultyProxy> {
  const links = new Set<Link>();
  let mode: "forward" | "blackhole" | "refuse" = "forward";
  let repliesToDrop = 0;
  let bytesToServer = 0;
  let bytesSwallowed = 0;

  const server = createServer({ noDelay: true }, (client) => {
    client.on("error", ignore);
    if (mode === "refuse") {
      client.resetAndDestroy();
      return;
    }
    const upstream = connect({ host: target.host, port: target.port, noDelay: true });
    const link: Link = { client, upstream, delayed: [], lastDueMs: 0, lost: false };
    links.add(link);
    client.on("data", (chunk) => {
      if (swallows(link, chunk.length)) return;
      bytesToServer += chunk.length;
      upstream.write(chunk);
    });
    client.on("close", () => {
      links.delete(link);
      upstream.destroy();
      for (const { timer } of link.delayed.splice(0)) clearTimeout(timer);
    });
    upstream.on("data", (chunk) => forwardReply(link, chunk));
    upstream.on("error", () => {
      if (!swallows(link, 0)) client.resetAndDestroy();
    });
    upstream.on("end", () => {
      if (!swallows(link, 0)) afterDelay(link, () => client.end());
    });
  });

  const swallows = (link: Link, bytes: number): boolean => {
    if (mode === "blackhole") link.lost = true;
    if (link.lost) bytesSwallowed += bytes;
    return link.lost;
  };

  const forwardReply = (link: Link, chunk: Buffer): void => {
    if (swallows(link, chunk.length)) return;
    if (repliesToDrop > 0) {
      repliesToDrop -= 1;
      link.client.resetAndDestroy();
      return;
    }
    afterDelay(link, () => {
      if (!swallows(link, chunk.length)) link.client.write(chunk);
    });
  };

  const afterDelay = (link: Link, act: () => void): void => {
    if (proxy.delayMs === 0 && link.delayed.length === 0) {
      act();
      return;
    }
    const nowMs = performance.now();
    link.lastDueMs = Math.max(link.lastDueMs, nowMs + proxy.delayMs);
    // Each timer lets go of the first in line, so that timers which overtake one another change no order.
    const timer = setTimeout(() => link.delayed.shift()?.act(), link.lastDueMs - nowMs);
    link.delayed.push({ act, timer });
  };

  server.listen(0, loopback);
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;

  const proxy: FaultyProxy = {
    port,
    url: `redis://${loopback}:${port}`,
    delayMs: 0,
    blackhole() {
      mode = "blackhole";
    },
    heal() {
      mode = "forward";
      repliesToDrop = 0;
      proxy.delayMs = 0;
      for (const { delayed } of links) {
        for (const { act, timer } of delayed.splice(0)) {
          clearTimeout(timer);
          act();
        }
      }
    },
    resetAll() {
      for (const { client } of links) client.resetAndDestroy();
    },
    refuse() {
      mode = "refuse";
    },
    dropRepliesOnce(count = 1) {
      repliesToDrop = count;
    },
    get connections() {
      return links.size;
    },
    get bytesToServer() {
      return bytesToServer;
    },
    get bytesSwallowed() {
      return bytesSwallowed;
    },
    async close() {
      const closed = new Promise((resolve) => server.close(resolve));
      for (const { client, upstream } of links) {
        client.destroy();
        upstream.destroy();
      }
      await closed;
    },
  };
  return proxy;
}

function ignore(): void {}
