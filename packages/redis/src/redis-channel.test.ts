import { createFaultyProxy, startCluster, startSentinel, startServer, type TestServer } from "@sluice/test-servers";
import { afterEach, describe, expect, it, vi } from "vitest";
import type { Address } from "./connect/redis-connection.ts";
import { parseRedisUrl, type RedisServers } from "./connect/redis-servers.ts";
import { openRedisChannel, type RedisChannel, type RedisChannelOptions } from "./redis-channel.ts";

const patience = { timeout: 30_000, interval: 20 };
const open: { close(): unknown }[] = [];
afterEach(async () => {
  for (const one of open.splice(0).reverse()) await one.close();
});

function join(
  servers: RedisServers,
  options?: RedisChannelOptions,
): RedisChannel & { readonly heard: string[]; readonly events: string[] } {
  const heard: string[] = [];
  const events: string[] = [];
  const listener = {
    onMessage: (message: string) => void heard.push(message),
    onConnected: () => void events.push("connected"),
    onLost: () => void events.push("lost"),
  };
  const channel = openRedisChannel(servers, "test-generation", listener, options);
  open.push(channel);
  return {
    heard,
    events,
    get connected() {
      return channel.connected;
    },
    send: channel.send,
    close: channel.close,
  };
}

async function connected(...channels: readonly RedisChannel[]): Promise<void> {
  await vi.waitFor(
    () => expect(channels.map((channel) => channel.connected)).toEqual(channels.map(() => true)),
    patience,
  );
}

describe("a channel", () => {
  it("delivers a message to all listeners, the sender included", async () => {
    const server = await startServer({ flavor: "valkey" });
    open.push(server);
    const [one, two] = [join(parseRedisUrl(server.url)), join(parseRedisUrl(server.url))];
    await connected(one, two);
    one.send("7");
    await vi.waitFor(() => expect([one.heard, two.heard]).toEqual([["7"], ["7"]]), patience);
  });

  it("sends the last of the messages that waited for a connection, and none that was sent before", async () => {
    const server = await startServer({ flavor: "valkey" });
    open.push(server);
    const listener = join(parseRedisUrl(server.url));
    await connected(listener);
    const late = join(parseRedisUrl(server.url));
    late.send("1");
    late.send("2");
    await vi.waitFor(() => expect(listener.heard).toEqual(["2"]), patience);
  });

  it("comes back after its server does, and says so", async () => {
    const server = await startServer({ flavor: "redis" });
    open.push(server);
    const channel = join(parseRedisUrl(server.url));
    await connected(channel);
    await server.kill();
    await vi.waitFor(() => expect(channel.connected).toBe(false), patience);
    await server.restart();
    await connected(channel);
    expect(channel.events[0]).toBe("connected");
    expect(channel.events).toContain("lost");
    expect(channel.events.at(-1)).toBe("connected");
    channel.send("8");
    await vi.waitFor(() => expect(channel.heard).toEqual(["8"]), patience);
  });

  it("leaves connections that are dead and do not say so", async () => {
    const server = await startServer({ flavor: "valkey" });
    open.push(server);
    const proxy = await createFaultyProxy(server);
    open.push(proxy);
    const channel = join(parseRedisUrl(proxy.url), { pingEveryMs: 50 });
    await connected(channel);
    proxy.blackhole();
    await vi.waitFor(() => expect(channel.connected).toBe(false), patience);
    proxy.heal();
    await connected(channel);
    channel.send("9");
    await vi.waitFor(() => expect(channel.heard).toEqual(["9"]), patience);
    expect(channel.events).toEqual(expect.arrayContaining(["connected", "lost"]));
  }, 60_000);

  it("reaches from any node of a cluster to any other, even past one that is gone", async () => {
    const cluster = await startCluster({ flavor: "valkey" });
    open.push(cluster);
    const [first, , third] = cluster.nodes.map(serverAddress);
    const gone = { kind: "tcp", host: "127.0.0.1", port: 1 } as const;
    const [one, two] = [
      join({ kind: "cluster", addresses: [gone, first!] }),
      join({ kind: "cluster", addresses: [third!] }),
    ];
    await connected(one, two);
    one.send("9");
    await vi.waitFor(() => expect([one.heard, two.heard]).toEqual([["9"], ["9"]]), patience);
  }, 60_000);

  it("finds the primary that Sentinels name, and the next one", async () => {
    const deployment = await startSentinel({ flavor: "valkey" });
    open.push(deployment);
    const { sentinels, masterName } = deployment;
    const servers = { kind: "sentinel", addresses: sentinels.map(serverAddress), masterName } as const;
    const [one, two] = [join(servers), join(servers)];
    await connected(one, two);
    one.send("10");
    await vi.waitFor(() => expect(two.heard).toEqual(["10"]), patience);
    await (await deployment.primary()).kill();
    // Until the Sentinels have agreed nothing arrives, and messages may be lost.
    await vi.waitFor(
      () => {
        one.send("11");
        expect(two.heard.at(-1)).toBe("11");
      },
      { timeout: 30_000, interval: 100 },
    );
  }, 60_000);
});

function serverAddress({ host, port }: TestServer): Address {
  return { kind: "tcp", host, port };
}
