import { readFileSync } from "node:fs";
import {
  createCertificates,
  createFaultyProxy,
  startCluster,
  startSentinel,
  startServer,
  type TestCluster,
  type TestServer,
} from "@sluice/test-servers";
import * as ioredis from "ioredis";
import * as iovalkey from "iovalkey";
import { StoreUnavailable } from "sluice";
import { compileTestLimit, counterStoreContract, resolvedLimit, type StoreUnderTest, testWindow } from "sluice/testing";
import { afterAll, afterEach, beforeAll, describe, expect, it, test } from "vitest";
import { RedisCounters } from "../redis-counters.ts";
import type { RedisCountersOptions } from "../redis-counters-options.ts";
import { scriptsOnTestTime, testTime } from "../testing/scripts-on-test-time.ts";
import type { IoredisClient, IoredisCluster } from "./ioredis-connection.ts";
import { renderServers } from "./redis-servers.ts";
import { serversFromIoredis } from "./servers-from-ioredis.ts";

/** Servers notice the end of a connection in their own time. */
const soon = { timeout: 30_000 };

type RedisOptions = Omit<iovalkey.RedisOptions, "Connector">;
type ClusterOptions = Pick<iovalkey.ClusterOptions, "lazyConnect" | "natMap"> & {
  readonly redisOptions: { readonly username: string; readonly password: string };
};
type AnyClient = ioredis.Redis | iovalkey.Redis;

/** The two packages, and a server of each kind to try them on. */
const packages = [
  {
    name: "ioredis",
    flavor: "redis",
    redis: (options: RedisOptions): AnyClient => new ioredis.Redis(options as object),
    cluster: (nodes: ioredis.ClusterNode[], options: ClusterOptions): ioredis.Cluster =>
      new ioredis.Cluster(nodes, options),
  },
  {
    name: "iovalkey",
    flavor: "valkey",
    redis: (options: RedisOptions): AnyClient => new iovalkey.Redis(options),
    cluster: (nodes: iovalkey.ClusterNode[], options: ClusterOptions): iovalkey.Cluster =>
      new iovalkey.Cluster(nodes, options),
  },
] as const;

const promises = counterStoreContract.filter(({ name }) =>
  [
    "conversation: GCRA, 2/s burst 5",
    "conversation: fixed window of a calendar day in Berlin",
    "conversation: sliding window, 10/10s",
    "conversation: sliding log, 5/10s",
    "gcra: a request of several limits takes from all or from none",
    "token_bucket: give returns a take, once",
    "sliding_window: charge takes more than there is, and its debt is bounded",
    "fixed_window: an id is charged once",
    "gcra: hostile subjects are subjects like any other",
    "sliding_log: read returns how a counter stands",
  ].includes(name),
);

const user = compileTestLimit({ algorithm: "gcra", windows: [testWindow(100, 3_600_000)] });
const take = resolvedLimit(user, "u1");

let opened: RedisCounters[] = [];
let lent: Lent[] = [];
let number = 0;

afterEach(async () => {
  await Promise.all(opened.map((store) => store.close()));
  for (const client of lent) client.disconnect();
  opened = [];
  lent = [];
});

interface Lent {
  disconnect(): void;
  on(event: string, listener: () => void): unknown;
}

function lend<T extends IoredisClient | IoredisCluster>(client: T & Lent): T {
  lent.push(client);
  client.on("error", () => undefined);
  return client;
}

function open(client: IoredisClient | IoredisCluster, more: Partial<RedisCountersOptions> = {}): RedisCounters {
  number += 1;
  const servers = serversFromIoredis(client);
  const store = new RedisCounters({ servers, prefix: `io${process.pid}-${number}`, deadlineMs: 5000, ...more });
  opened.push(store);
  return store;
}

async function openOnTestTime(client: IoredisClient | IoredisCluster): Promise<StoreUnderTest> {
  const clock = testTime();
  const store = open(client, { tune: scriptsOnTestTime(clock) } as Partial<RedisCountersOptions>);
  await store.connected();
  return { store, advance: (ms) => clock.advance(ms) };
}

it("tries promises of the contract that are there", () => {
  expect(promises).toHaveLength(10);
});

describe.each(packages)("with a client of $name on $flavor", ({ flavor, redis }) => {
  let server: TestServer;
  beforeAll(async () => {
    server = await startServer({ flavor });
  });
  afterAll(() => server.close());

  const ofServer = (more: RedisOptions = {}): AnyClient =>
    lend(redis({ host: server.host, port: server.port, ...more }));

  test.each(promises)("$name", ({ run }) => run(() => openOnTestTime(ofServer({ lazyConnect: true }))));

  it("counts under its own settings, whatever the client's are", async () => {
    const client = ofServer({
      db: 3,
      keyPrefix: "app:",
      stringNumbers: true,
      enableAutoPipelining: true,
      commandTimeout: 1,
      connectionName: "mine",
      enableOfflineQueue: true,
      maxRetriesPerRequest: null,
      showFriendlyErrorStack: true,
    });
    const store = open(client, { prefix: "own" });
    await store.connected();
    const answers = await Promise.all(Array.from({ length: 120 }, () => store.take([take])));
    expect(answers.filter(({ taken }) => taken)).toHaveLength(100);
    await server.command("SELECT", 3);
    expect(await server.command("KEYS", "*")).toEqual([expect.stringMatching(/^own:/)]);
    await server.command("SELECT", 0);
  });

  it("leaves the client as it was, connected or not, and no connection behind", async () => {
    const client = ofServer({ connectionName: "mine" });
    await client.set("greeting", "hello");
    const lazy = ofServer({ lazyConnect: true });
    const optionsBefore = { ...client.options };
    const listenersBefore = client.eventNames().map((event) => [event, client.listenerCount(event)]);
    const connections = async (name: string): Promise<number> =>
      String(await server.command("CLIENT", "LIST"))
        .split("\n")
        .filter((line) => line.includes(` name=${name} `)).length;

    const stores = [open(client), open(lazy)];
    await Promise.all(stores.map((store) => store.connected()));
    expect((await stores[0]!.take([take])).taken).toBe(true);
    await expect.poll(async () => [await connections("mine"), await connections("sluice")], soon).toEqual([1, 2]);
    await Promise.all(stores.map((store) => store.close()));
    await expect.poll(() => connections("sluice"), soon).toBe(0);

    expect(client.options).toEqual(optionsBefore);
    expect(client.eventNames().map((event) => [event, client.listenerCount(event)])).toEqual(listenersBefore);
    expect([client.status, lazy.status]).toEqual(["ready", "wait"]);
    expect(await client.get("greeting")).toBe("hello");
  });

  it("charges once if the reply to a take is lost, though the client itself would send it again", async () => {
    const proxy = await createFaultyProxy(server);
    try {
      const client = ofServer({ port: proxy.port });
      await client.set("n", "0");
      proxy.dropRepliesOnce();
      await client.incr("n");
      expect(await client.get("n")).toBe("2");

      const store = open(client);
      await store.connected();
      await store.take([take]);
      proxy.dropRepliesOnce();
      await expect(store.take([take])).rejects.toBeInstanceOf(StoreUnavailable);
      await expect.poll(() => store.ready, { timeout: 30_000 }).toBe(true);
      expect((await store.peek([take])).outcomes[0]!.remaining).toBe(98);
    } finally {
      await proxy.close();
    }
  });

  it("sends nothing again that was asked of a server which died, and serves when it is back", async () => {
    const own = await startServer({ flavor });
    try {
      const client = lend(redis({ host: own.host, port: own.port }));
      const store = open(client);
      await store.connected();
      await store.take([take]);
      own.pause();
      const asked = Promise.allSettled(Array.from({ length: 50 }, () => store.take([take])));
      // Sent, and lying in the socket of a server that does not read.
      await expect.poll(() => store.stats.calls, soon).toBeGreaterThan(1);
      await own.kill();
      expect((await asked).map((one) => one.status === "rejected" && one.reason.reason)).toEqual(
        Array.from({ length: 50 }, () => "storage_unavailable"),
      );
      await own.restart();
      await expect.poll(() => store.ready, { timeout: 30_000 }).toBe(true);
      expect(String(await own.command("INFO", "commandstats"))).not.toMatch(/cmdstat_eval/);
      expect((await store.take([take])).outcomes[0]!.remaining).toBe(99);
    } finally {
      await own.close();
    }
  });

  it("shows the client's certificate", async () => {
    const certificates = await createCertificates();
    const own = await startServer({ flavor, tls: certificates, args: ["--tls-auth-clients", "yes"] });
    try {
      const read = (file: string): string => readFileSync(file, "utf8");
      const tls = {
        ca: read(certificates.ca),
        cert: read(certificates.clientCert),
        key: read(certificates.clientKey),
      };
      const client = lend(redis({ host: own.host, port: own.port, tls }));
      const store = open(client);
      await store.connected();
      expect((await store.take([take])).taken).toBe(true);
      expect(renderServers(serversFromIoredis(client))).toBe(`rediss://${own.host}:${own.port}`);
    } finally {
      await own.close();
      await certificates.close();
    }
  });
});

describe.each(packages)("with a cluster client of $name on $flavor", ({ flavor, cluster: create }) => {
  let cluster: TestCluster;
  beforeAll(async () => {
    cluster = await startCluster({ flavor });
    await Promise.all(
      cluster.nodes.map((node) => node.command("ACL", "SETUSER", "app", "on", ">pass word", "~*", "+@all")),
    );
  });
  afterAll(() => cluster.close());

  const redisOptions = { username: "app", password: "pass word" };
  const [host, ports] = ["127.0.0.1", (): number[] => cluster.nodes.map(({ port }) => port)];

  test.each(promises)("$name", ({ run }) =>
    run(() =>
      openOnTestTime(
        lend(
          create(
            ports().map((port) => ({ host, port })),
            { redisOptions },
          ),
        ),
      ),
    ),
  );

  it("counts as the client's user", async () => {
    const store = open(lend(create([{ host, port: ports()[0]! }], { redisOptions })));
    await store.connected();
    for (const node of cluster.nodes) {
      await expect
        .poll(async () => String(await node.command("CLIENT", "LIST")).match(/ name=sluice .* user=\S+ /g), soon)
        .toEqual([expect.stringContaining(" user=app ")]);
    }
  });

  it("waits with a client that has not begun to connect, and leaves it so", async () => {
    const client = lend(create([{ host, port: ports()[0]! }], { redisOptions, lazyConnect: true }));
    const store = open(client);
    await expect(store.connected(100)).rejects.toBeInstanceOf(StoreUnavailable);
    expect(client.status).toBe("wait");
    await client.connect();
    await store.connected();
    expect((await store.take([take])).taken).toBe(true);
  });

  it("goes where the client's NAT map says that servers are", async () => {
    const proxies = await Promise.all(cluster.nodes.map(createFaultyProxy));
    try {
      const natMap = Object.fromEntries(
        cluster.nodes.map(({ port }, i) => [`${host}:${port}`, { host, port: proxies[i]!.port }]),
      );
      const client = lend(create([{ host, port: ports()[0]! }], { redisOptions, natMap, lazyConnect: true }));
      const store = open(client);
      await client.connect();
      client.disconnect();
      const before = proxies.map(({ bytesToServer }) => bytesToServer);
      await store.connected();
      await Promise.all(Array.from({ length: 200 }, (_, i) => store.take([resolvedLimit(user, `u${i}`)])));
      for (const [i, proxy] of proxies.entries()) expect(proxy.bytesToServer).toBeGreaterThan(before[i]!);
    } finally {
      await Promise.all(opened.map((store) => store.close()));
      await Promise.all(proxies.map((proxy) => proxy.close()));
    }
  });
});

describe.each(packages)("with a client of $name for Sentinels on $flavor", ({ flavor, redis }) => {
  it("follows the primary to where the Sentinels put it", async () => {
    const sentinel = await startSentinel({ flavor, downAfterMs: 500 });
    try {
      const client = lend(
        redis({
          sentinels: sentinel.sentinels.map(({ host, port }) => ({ host, port })),
          name: sentinel.masterName,
          db: 2,
        }),
      );
      const store = open(client);
      await store.connected();
      expect((await store.take([take])).taken).toBe(true);
      const old = await sentinel.primary();
      await old.kill();
      await sentinel.waitForNewPrimary(old);
      await expect
        .poll(async () => (await store.take([take]).catch(() => undefined))?.taken, { timeout: 30_000 })
        .toBe(true);
    } finally {
      await sentinel.close();
    }
  }, 60_000);
});

describe("the result of serversFromIoredis", () => {
  const lazy = (options: ioredis.RedisOptions): ioredis.Redis =>
    new ioredis.Redis<"legacy">({ ...options, replyMapping: "legacy", lazyConnect: true });
  const lazyCluster = (nodes: ioredis.ClusterNode[]): ioredis.Cluster =>
    new ioredis.Cluster(nodes, { lazyConnect: true });

  it("is one server by host and port, or by its socket", () => {
    expect(serversFromIoredis(lazy({}))).toMatchObject({
      kind: "standalone",
      addresses: [{ kind: "tcp", host: "localhost", port: 6379 }],
    });
    expect(serversFromIoredis(new ioredis.Redis("rediss://a:secret@h:1/2", { lazyConnect: true }))).toMatchObject({
      addresses: [{ kind: "tcp", host: "h", port: 1 }],
      tls: {},
    });
    expect(serversFromIoredis(lazy({ path: "/run/s" })).addresses).toEqual([{ kind: "unix", path: "/run/s" }]);
  });

  it("is Sentinels and their name for the primary", () => {
    const sentinels = [{ host: "s1" }, { host: "s2", port: 7 }];
    expect(serversFromIoredis(lazy({ sentinels, name: "main" }))).toMatchObject({
      kind: "sentinel",
      addresses: [
        { kind: "tcp", host: "s1", port: 26_379 },
        { kind: "tcp", host: "s2", port: 7 },
      ],
      masterName: "main",
    });
  });

  it("is the nodes that a cluster client was given, however they are written", () => {
    const nodes = [7000, "7001", "h:7002", "redis://u:p@h:7003", "//[::1]:7004", "h", { port: 7005 }, { host: "x" }];
    expect(serversFromIoredis(lazyCluster(nodes as ioredis.ClusterNode[])).addresses).toEqual(
      (
        [
          ["127.0.0.1", 7000],
          ["127.0.0.1", 7001],
          ["h", 7002],
          ["h", 7003],
          ["::1", 7004],
          ["h", 6379],
          ["127.0.0.1", 7005],
          ["x", 6379],
        ] as const
      ).map(([host, port]) => ({ kind: "tcp", host, port })),
    );
  });

  it("refuses a cluster client whose nodes DNS names, before it has asked DNS", () => {
    const client = new ioredis.Cluster([{ host: "_redis._tcp.example" }], { useSRVRecords: true, lazyConnect: true });
    expect(() => serversFromIoredis(client)).toThrow("hand it over when it is connected");
  });
});
