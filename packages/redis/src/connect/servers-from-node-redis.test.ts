import { readFileSync } from "node:fs";
import { createClient } from "@redis/client";
import { createCertificates, startServer, type TestServer } from "@sluice/test-servers";
import { compileTestLimit, resolvedLimit, testWindow } from "sluice/testing";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { RedisCounters } from "../redis-counters.ts";
import type { NodeRedisClient } from "./node-redis-connection.ts";
import { renderServers } from "./redis-servers.ts";
import { serversFromNodeRedis } from "./servers-from-node-redis.ts";

/** Servers notice the end of a connection in their own time. */
const soon = { timeout: 30_000 };

const limit = compileTestLimit({ algorithm: "gcra", windows: [testWindow(10, 3_600_000)] });
const take = resolvedLimit(limit, "u1");

describe("with a client of node-redis", () => {
  let server: TestServer;
  let opened: RedisCounters[] = [];
  let lent: { destroy(): void }[] = [];

  beforeAll(async () => {
    server = await startServer({ flavor: "valkey" });
    await server.command("ACL", "SETUSER", "app", "on", ">p@ss:w/rd", "~*", "+@all");
  });
  afterAll(() => server.close());
  afterEach(async () => {
    await Promise.all(opened.map((store) => store.close()));
    for (const client of lent) client.destroy();
    opened = [];
    lent = [];
  });

  function lend<T extends NodeRedisClient>(client: T): T {
    lent.push(client);
    return client;
  }

  async function open(client: NodeRedisClient): Promise<RedisCounters> {
    const store = new RedisCounters({ servers: serversFromNodeRedis(client), deadlineMs: 5000 });
    opened.push(store);
    await store.connected();
    return store;
  }

  const clients = (): Promise<readonly string[]> =>
    server.command("CLIENT", "LIST").then((list) => String(list).split("\n"));

  it("counts as the client's user in its database, and leaves the client as it was", async () => {
    const url = `redis://app:p%40ss%3Aw%2Frd@${server.host}:${server.port}/4`;
    const client = lend(createClient({ url, name: "mine", keyPrefix: "app:", clientSideCache: { maxEntries: 10 } }));
    await client.connect();
    await client.set("greeting", "hello");
    const store = await open(client);
    const answers = await Promise.all(Array.from({ length: 12 }, () => store.take([take])));
    expect(answers.filter(({ taken }) => taken)).toHaveLength(10);
    expect((await clients()).filter((line) => line.includes(" name=sluice "))).toEqual([
      expect.stringMatching(/ db=4 .* user=app .* resp=2 /),
    ]);
    await server.command("SELECT", 4);
    expect((await server.command("KEYS", "*")) as string[]).toEqual(
      expect.arrayContaining(["app:greeting", expect.stringMatching(/^s:/)]),
    );
    await server.command("SELECT", 0);

    await store.close();
    await expect.poll(async () => (await clients()).some((line) => line.includes(" name=sluice ")), soon).toBe(false);
    expect(client.isReady).toBe(true);
    expect(await client.get("greeting")).toBe("hello");
  });

  it("does not need the client to be connected, and follows it to a socket", async () => {
    const client = lend(createClient({ socket: { path: server.unixSocket, tls: false } }));
    const store = await open(client);
    expect((await store.peek([take])).outcomes).toHaveLength(1);
    expect(client.isOpen).toBe(false);
    expect(renderServers(serversFromNodeRedis(client))).toBe(`unix://${server.unixSocket}`);
  });

  it("shows the client's certificate", async () => {
    const certificates = await createCertificates();
    const own = await startServer({ flavor: "redis", tls: certificates, args: ["--tls-auth-clients", "yes"] });
    try {
      const socket = {
        tls: true as const,
        host: own.host,
        port: own.port,
        ca: readFileSync(certificates.ca),
        cert: readFileSync(certificates.clientCert),
        key: readFileSync(certificates.clientKey),
      };
      const client = lend(createClient({ socket }));
      const store = await open(client);
      expect((await store.take([take])).taken).toBe(true);
      expect(renderServers(serversFromNodeRedis(client))).toBe(`rediss://${own.host}:${own.port}`);
    } finally {
      await own.close();
      await certificates.close();
    }
  });

  it("uses the defaults for what the client leaves out", () => {
    expect(serversFromNodeRedis(createClient())).toMatchObject({
      kind: "standalone",
      addresses: [{ kind: "tcp", host: "localhost", port: 6379 }],
    });
  });
});
