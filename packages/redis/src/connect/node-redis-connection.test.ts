import { EventEmitter } from "node:events";
import { describe, expect, it } from "vitest";
import { connectLikeNodeRedis, type NodeRedisClient } from "./node-redis-connection.ts";

/** A client that never reaches its server. Newer ones let go of credentials and metrics only when they are destroyed. */
class UnreachedClient extends EventEmitter implements NodeRedisClient {
  readonly isReady = false;
  isOpen = true;
  destroyed = false;
  readonly #made: UnreachedClient[];
  readonly #refuses: boolean;

  constructor(made: UnreachedClient[], refuses: boolean) {
    super();
    this.#made = made;
    this.#refuses = refuses;
  }

  duplicate(): UnreachedClient {
    const client = new UnreachedClient(this.#made, this.#refuses);
    this.#made.push(client);
    return client;
  }

  async connect(): Promise<never> {
    await Promise.resolve();
    this.isOpen = false;
    const error = new Error("connect ECONNREFUSED");
    this.emit("error", error);
    throw error;
  }

  sendCommand(): Promise<never> {
    return Promise.reject(new Error("there is no connection"));
  }

  destroy(): void {
    this.destroyed = true;
    if (this.#refuses && !this.isOpen) throw new Error("The client is closed");
  }
}

describe.each([
  ["", false],
  [" and refuse to end twice", true],
])("clients of node-redis that cannot connect%s", (_, refuses) => {
  it("are destroyed before others are made, so that nothing holds on to them", async () => {
    const made: UnreachedClient[] = [];
    const connect = connectLikeNodeRedis(new UnreachedClient(made, refuses));
    const address = { kind: "tcp", host: "127.0.0.1", port: 1 } as const;
    const connection = connect(address, { onReady: () => undefined, onLost: () => undefined });
    await expect.poll(() => made.length, { timeout: 10_000, interval: 5 }).toBeGreaterThanOrEqual(3);
    expect(made.slice(0, -1).map(({ destroyed }) => destroyed)).not.toContain(false);
    connection.close();
    expect(made.map(({ destroyed }) => destroyed)).not.toContain(false);
  });
});
