import { readFileSync } from "node:fs";
import { inspect } from "node:util";
import {
  createCertificates,
  flavors,
  startSentinel,
  startServer,
  type TestCertificates,
  type TestSentinel,
  type TestServer,
} from "@sluice/test-servers";
import { StoreUnavailable } from "sluice";
import { compileTestLimit, resolvedLimit, testWindow } from "sluice/testing";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { parseRedisUrl, type RedisServers } from "./connect/redis-servers.ts";
import { RedisCounters } from "./redis-counters.ts";
import type { RedisEvent } from "./site.ts";

/** Servers notice the end of a connection in their own time. */
const soon = { timeout: 30_000 };

const limit = compileTestLimit({ algorithm: "gcra", windows: [testWindow(10, 3_600_000)] });
const take = resolvedLimit(limit, "u1");

let opened: RedisCounters[] = [];
afterEach(async () => {
  await Promise.all(opened.map((store) => store.close()));
  opened = [];
});

interface Opened {
  readonly store: RedisCounters;
  readonly events: readonly RedisEvent[];
}

function open(servers: string | RedisServers): Opened {
  const events: RedisEvent[] = [];
  const store = new RedisCounters({ servers, deadlineMs: 5000, onEvent: (event) => events.push(event) });
  opened.push(store);
  return { store, events };
}

async function openConnected(servers: string | RedisServers): Promise<Opened> {
  const one = open(servers);
  await one.store.connected();
  return one;
}

/** Why the servers could not be reached, according to events, which must not contain secrets. */
async function whyNot(servers: string | RedisServers, secrets: readonly string[]): Promise<string> {
  const { store, events } = open(servers);
  const refusal: unknown = await store.connected(500).catch((error: unknown) => error);
  expect(refusal).toBeInstanceOf(StoreUnavailable);
  const rejected: unknown = await store.take([take]).catch((error: unknown) => error);
  expect(rejected).toBeInstanceOf(StoreUnavailable);
  const everything = inspect([events, refusal, rejected], { depth: 12, showHidden: true, maxStringLength: null });
  for (const secret of secrets) expect(everything).not.toContain(secret);
  const [first] = events;
  expect(first?.kind).toBe("disconnected");
  return first?.kind === "disconnected" ? first.error.message : "";
}

describe.each(flavors)("a %s server that speaks TLS to those with a certificate", (flavor) => {
  let certificates: TestCertificates;
  let others: TestCertificates;
  let server: TestServer;
  const read = (file: string): string => readFileSync(file, "utf8");
  const servers = (tls: RedisServers["tls"]): RedisServers => ({ ...parseRedisUrl(server.url), tls });
  const client = (): { cert: string; key: string } => ({
    cert: read(certificates.clientCert),
    key: read(certificates.clientKey),
  });

  beforeAll(async () => {
    [certificates, others] = await Promise.all([createCertificates(), createCertificates()]);
    server = await startServer({ flavor, tls: certificates, args: ["--tls-auth-clients", "yes"] });
  });
  afterAll(() => Promise.all([server.close(), certificates.close(), others.close()]));

  it("is reached with its authority and a client's certificate", async () => {
    const { store, events } = await openConnected(servers({ ca: read(certificates.ca), ...client() }));
    expect((await store.take([take])).taken).toBe(true);
    expect(events).toEqual([{ kind: "connected", shard: `${server.host}:${server.port}` }]);
  });

  it("is reached by the name that is in its certificate, and not by another", async () => {
    const tls = { ca: read(certificates.ca), ...client() };
    const { store } = await openConnected(servers({ ...tls, serverName: "localhost" }));
    expect((await store.peek([take])).outcomes).toHaveLength(1);
    expect(await whyNot(servers({ ...tls, serverName: "other.example" }), [tls.key])).toContain("other.example");
  });

  it("is refused if its CA is another, or one of the machine's", async () => {
    const tls = client();
    expect(await whyNot(servers({ ...tls, ca: read(others.ca) }), [tls.key])).toContain("certificate");
    expect(await whyNot(servers(tls), [tls.key])).toContain("certificate");
  });

  it("refuses clients without a certificate, or with one of another CA", async () => {
    const ca = read(certificates.ca);
    expect(await whyNot(servers({ ca }), [])).toContain("certificate required");
    const stranger = { cert: read(others.clientCert), key: read(others.clientKey) };
    expect(await whyNot(servers({ ca, ...stranger }), [stranger.key])).toContain("alert");
  });

  it("is not spoken to without TLS", async () => {
    expect(await whyNot(server.url.replace("rediss:", "redis:"), [])).not.toBe("");
  });
});

describe.each(flavors)("a %s server with users", (flavor) => {
  const password = 'p@ss:w/rd?#%"{ü}';
  let server: TestServer;
  const url = (user: string): string => `redis://${user}@${server.host}:${server.port}`;

  beforeAll(async () => {
    server = await startServer({ flavor });
    await server.command("ACL", "SETUSER", "us:er@/%", "on", `>${password}`, "~*", "+@all");
    await server.command("CONFIG", "SET", "requirepass", "default-secret");
    await server.command("AUTH", "default-secret");
  });
  afterAll(() => server.close());

  it("is reached by user and password, whatever is in them", async () => {
    const user = `${encodeURIComponent("us:er@/%")}:${encodeURIComponent(password)}`;
    const { store } = await openConnected(url(user));
    expect((await store.take([take])).taken).toBe(true);
    const list = String(await server.command("CLIENT", "LIST"));
    expect(list.split("\n").filter((line) => line.includes(" name=sluice "))).toEqual([
      expect.stringContaining("user=us:er@/%"),
    ]);
  });

  it("is reached by the default user's password, without a user", async () => {
    const { store } = await openConnected(url(":default-secret"));
    expect((await store.peek([take])).outcomes).toHaveLength(1);
  });

  it("reports a wrong password without revealing it, nor the right one", async () => {
    const secrets = ["wr0ng", "default-secret", password];
    expect(await whyNot(url(":wr0ng"), secrets)).toMatch(/^WRONGPASS/);
    expect(await whyNot(url("somebody:wr0ng"), secrets)).toMatch(/^WRONGPASS/);
  });

  it("reports that a password is missing", async () => {
    expect(await whyNot(`redis://${server.host}:${server.port}`, ["default-secret"])).toMatch(/^NOAUTH/);
  });

  it("is reached by its socket, with a password", async () => {
    const { store } = await openConnected(`unix://:default-secret@${server.unixSocket}`);
    expect(store.stats.shards).toMatchObject([{ name: server.unixSocket, connected: true }]);
  });

  it("keeps counters in the database that is named, apart from the others", async () => {
    const [zero, nine] = await Promise.all([
      openConnected(url(":default-secret")),
      openConnected(`${url(":default-secret")}/9`),
    ]);
    await zero.store.reset([take]);
    await nine.store.take([{ ...take, cost: 10 }]);
    expect((await nine.store.take([take])).taken).toBe(false);
    expect((await zero.store.take([take])).taken).toBe(true);
    await server.command("SELECT", 9);
    expect(await server.command("DBSIZE")).toBe(1);
    await server.command("SELECT", 0);
  });

  it("reports a database that does not exist", async () => {
    expect(await whyNot(`${url(":default-secret")}/99`, ["default-secret"])).toContain("DB index is out of range");
  });
});

describe.each(flavors)("%s servers under Sentinels", (flavor) => {
  let sentinel: TestSentinel;
  afterEach(() => sentinel.close());

  const addresses = (): string => sentinel.sentinels.map(({ host, port }) => `${host}:${port}`).join(",");
  const served = async (store: RedisCounters): Promise<boolean | undefined> =>
    (await store.take([take]).catch(() => undefined))?.taken;

  it("serve, and serve again from the new primary when theirs has died", async () => {
    sentinel = await startSentinel({ flavor, downAfterMs: 500 });
    const { store, events } = await openConnected(`redis+sentinel://${addresses()}/${sentinel.masterName}`);
    expect(await served(store)).toBe(true);
    const old = await sentinel.primary();
    await old.kill();
    await expect.poll(() => store.ready, soon).toBe(false);
    await expect(store.take([take])).rejects.toBeInstanceOf(StoreUnavailable);
    const next = await sentinel.waitForNewPrimary(old);
    await expect.poll(() => served(store), { timeout: 30_000 }).toBe(true);
    expect(store.stats.shards).toMatchObject([{ name: `${next.host}:${next.port}`, connected: true }]);
    expect(events).toContainEqual({
      kind: "moved",
      description: `the primary is ${next.host}:${next.port} now, and was ${old.host}:${old.port}`,
    });
    expect(store.stats.moves).toBe(1);

    // The old one comes back as a replica, which is not asked.
    await old.restart();
    await expect.poll(async () => (await old.command("ROLE")) as unknown[], { timeout: 30_000 }).toContain("slave");
    expect(await served(store)).toBe(true);
    expect(store.stats.shards).toMatchObject([{ name: `${next.host}:${next.port}`, connected: true }]);
  }, 60_000);

  it("are found by any of the Sentinels, and want a password that the Sentinels do not", async () => {
    sentinel = await startSentinel({ flavor, downAfterMs: 5000 });
    for (const server of sentinel.servers) {
      await server.command("CONFIG", "SET", "masterauth", "s3cret");
      await server.command("CONFIG", "SET", "requirepass", "s3cret");
    }
    const all = addresses();
    await Promise.all(sentinel.sentinels.slice(0, 2).map((one) => one.kill()));
    const { store } = await openConnected(`redis+sentinel://:s3cret@${all}/${sentinel.masterName}`);
    expect(await served(store)).toBe(true);
    const wrong = `redis+sentinel://:wr0ng@${all}/${sentinel.masterName}`;
    expect(await whyNot(wrong, ["s3cret", "wr0ng"])).toMatch(/^WRONGPASS/);
  }, 60_000);

  it("serve a user that may count, but not ask servers about themselves", async () => {
    sentinel = await startSentinel({ flavor, sentinels: 1, replicas: 0, downAfterMs: 5000 });
    const rules = ["on", ">s3cret", "~s:*", "+@all", "-@admin", "-@dangerous"];
    await sentinel.servers[0]!.command("ACL", "SETUSER", "counter", ...rules);
    const { store } = await openConnected(`redis+sentinel://counter:s3cret@${addresses()}/${sentinel.masterName}`);
    expect(await served(store)).toBe(true);
  }, 60_000);

  it("are not found by a name that the Sentinels do not know, which is an event", async () => {
    sentinel = await startSentinel({ flavor, sentinels: 1, replicas: 0, downAfterMs: 5000 });
    expect(await whyNot(`redis+sentinel://${addresses()}/another`, [])).toBe(
      "no Sentinel names the primary another; the last said: it is not known here",
    );
  }, 60_000);

  it("are not found if no Sentinel can be reached, which is an event", async () => {
    sentinel = await startSentinel({ flavor, sentinels: 1, replicas: 0, downAfterMs: 5000 });
    const [only] = sentinel.sentinels;
    await only!.kill();
    expect(await whyNot(`redis+sentinel://${addresses()}/${sentinel.masterName}`, [])).toContain("ECONNREFUSED");
  }, 60_000);

  it("serve though a Sentinel that is asked first names a server that is long gone", async () => {
    sentinel = await startSentinel({ flavor, downAfterMs: 5000, sentinels: 1, replicas: 0 });
    const stale = await startSentinel({ flavor, downAfterMs: 500, sentinels: 1, replicas: 0 });
    try {
      await (await stale.primary()).kill();
      const [behind] = stale.sentinels;
      const { store, events } = await openConnected(
        `redis+sentinel://${behind!.host}:${behind!.port},${addresses()}/${sentinel.masterName}`,
      );
      expect(await served(store)).toBe(true);
      const primary = await sentinel.primary();
      expect(store.stats.shards).toMatchObject([{ name: `${primary.host}:${primary.port}`, connected: true }]);
      // It stays there, through the next looks at the Sentinels.
      await primary.restart();
      await expect.poll(() => served(store), { timeout: 30_000 }).toBe(true);
      expect(events.filter(({ kind }) => kind === "moved")).toEqual([]);
    } finally {
      await stale.close();
    }
  }, 60_000);
});
