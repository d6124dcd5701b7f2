import { createFaultyProxy, startServer, type TestServer } from "@sluice/test-servers";
import { SluiceError, StoreUnavailable } from "sluice";
import { compileTestLimit, resolvedLimit, testWindow } from "sluice/testing";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { RedisCounters } from "./redis-counters.ts";
import type { RedisCountersOptions } from "./redis-counters-options.ts";

/** Servers notice the end of a connection in their own time. */
const soon = { timeout: 30_000 };

const limit = compileTestLimit({ algorithm: "gcra", windows: [testWindow(1000, 3_600_000)] });
const take = resolvedLimit(limit, "u1");
const nowhere = "redis://127.0.0.1:1";

let first: TestServer;
let second: TestServer;
let opened: RedisCounters[] = [];

beforeAll(async () => {
  [first, second] = await Promise.all([startServer({ flavor: "valkey" }), startServer({ flavor: "redis" })]);
});
afterAll(() => Promise.all([first.close(), second.close()]));
beforeEach(async () => {
  await Promise.all([first.command("FLUSHALL"), second.command("FLUSHALL")]);
});
afterEach(async () => {
  await Promise.all(opened.map((store) => store.close()));
  opened = [];
});

function open(servers: RedisCountersOptions["servers"], more: Partial<RedisCountersOptions> = {}): RedisCounters {
  const store = new RedisCounters({ servers, deadlineMs: 5000, ...more });
  opened.push(store);
  return store;
}

async function connectionsTo(server: TestServer): Promise<number> {
  const list = String(await server.command("CLIENT", "LIST"));
  return list.split("\n").filter((line) => line.includes(" name=sluice ")).length;
}

const remainingIn = async (store: RedisCounters): Promise<number> => (await store.peek([take])).outcomes[0]!.remaining;

describe("connecting", () => {
  it("resolves when the servers are there, and at once after that", async () => {
    const store = open(first.url);
    expect(store.ready).toBe(false);
    await store.connected();
    expect(store.ready).toBe(true);
    await store.connected(0);
  });

  it("rejects when they are not there in time, and says how long it waited", async () => {
    const store = open(nowhere);
    const error: unknown = await store.connected(100).catch((one: unknown) => one);
    expect(error).toBeInstanceOf(StoreUnavailable);
    expect((error as StoreUnavailable).reason).toBe("storage_unavailable");
    expect((error as StoreUnavailable).message).toContain("100 ms");
    expect(store.ready).toBe(false);
  });

  it("waits for the servers of cells as well", async () => {
    const store = open(first.url, { cells: [{ name: "away", servers: nowhere, values: { user: ["u1"] } }] });
    await expect(store.connected(200)).rejects.toBeInstanceOf(StoreUnavailable);
    expect(store.stats.shards.map(({ connected }) => connected)).toEqual([true, false]);
  });

  it("lets earlier questions wait for it, and answers all of them", async () => {
    const store = open(first.url);
    const answers = await Promise.all([
      ...Array.from({ length: 30 }, () => store.take([take])),
      store.take([take], { id: "a", receipt: true }),
    ]);
    expect(answers.every(({ taken }) => taken)).toBe(true);
    await store.charge([take]);
    expect(await remainingIn(store)).toBe(968);
  });

  it("lets it wait no longer than its deadline, and sends nothing of it afterwards", async () => {
    const proxy = await createFaultyProxy(first);
    try {
      proxy.blackhole();
      const store = open(proxy.url, { deadlineMs: 50 });
      const rejected: unknown = await store.take([take]).catch((error: unknown) => error);
      expect(rejected).toBeInstanceOf(StoreUnavailable);
      proxy.heal();
      proxy.resetAll();
      await store.connected();
      expect(await remainingIn(store)).toBe(1000);
    } finally {
      await proxy.close();
    }
  });

  it("is refused if the address of a cell is wrong, and leaves no connection behind", async () => {
    const own = await startServer({ flavor: "valkey" });
    try {
      const cells = [{ name: "wrong", servers: "redis://a,b" }];
      expect(() => open(own.url, { cells })).toThrow(SluiceError);
      // If there were one, it would be there by now.
      await open(own.url).connected();
      await expect.poll(() => connectionsTo(own), soon).toBe(1);
    } finally {
      await own.close();
    }
  });
});

describe("going over to other servers", () => {
  it("asks only the new ones from then on, and lets go of the old ones", async () => {
    const store = open(first.url);
    await store.connected();
    await store.take([take]);
    await store.useServers(second.url);
    expect(await remainingIn(store)).toBe(1000);
    await store.take([take]);
    expect([await first.command("DBSIZE"), await second.command("DBSIZE")]).toEqual([1, 1]);
    expect(store.stats.shards).toMatchObject([{ name: `${second.host}:${second.port}`, connected: true }]);
    await expect.poll(() => connectionsTo(first), soon).toBe(0);
    await expect.poll(() => connectionsTo(second), soon).toBe(1);
  });

  it("lets the old ones finish their pending questions, of every kind", async () => {
    const proxy = await createFaultyProxy(first);
    try {
      const store = open(proxy.url);
      await store.connected();
      await store.take([take]);
      proxy.delayMs = 300;
      const before = Array.from({ length: 20 }, () => store.take([take]));
      await expect.poll(() => store.stats.calls, soon).toBe(2);
      await store.useServers(second.url);
      const after = Array.from({ length: 10 }, () => store.take([take]));
      const answers = await Promise.all([...before, ...after]);
      expect(answers.every(({ taken }) => taken)).toBe(true);
      expect(await remainingIn(store)).toBe(990);
      await store.useServers(first.url);
      expect(await remainingIn(store)).toBe(979);
    } finally {
      await proxy.close();
    }
  });

  it("stays with the old ones if the new ones cannot be reached, or not parsed", async () => {
    const store = open(first.url);
    await store.connected();
    await store.take([take]);
    await expect(store.useServers(nowhere, 100)).rejects.toBeInstanceOf(StoreUnavailable);
    await expect(store.useServers("redis://")).rejects.toBeInstanceOf(SluiceError);
    expect(store.ready).toBe(true);
    expect(await remainingIn(store)).toBe(999);
    expect((await store.take([take])).taken).toBe(true);
    expect(store.stats.shards).toHaveLength(1);
  });

  it("goes over from servers that are not there", async () => {
    const store = open(nowhere);
    await expect(store.connected(50)).rejects.toBeInstanceOf(StoreUnavailable);
    await store.useServers(first.url);
    expect((await store.take([take])).taken).toBe(true);
  });

  it("keeps one connection if several changes are requested at once", async () => {
    const store = open(first.url);
    await store.connected();
    const asked = [store.useServers(second.url), store.useServers(first.url), store.useServers(second.url)];
    const statuses = (await Promise.allSettled(asked)).map(({ status }) => status);
    expect(statuses, "what was asked last counts").toEqual(["rejected", "rejected", "fulfilled"]);
    expect((await store.take([take])).taken).toBe(true);
    await expect.poll(async () => (await connectionsTo(first)) + (await connectionsTo(second)), soon).toBe(1);
  });
});

describe("closing", () => {
  it("leaves no connection, and rejects what is in flight and what comes after", async () => {
    const proxy = await createFaultyProxy(first);
    try {
      const store = open(proxy.url);
      await store.connected();
      proxy.delayMs = 10_000;
      const waiting = store.take([take]);
      await expect.poll(() => store.stats.calls, soon).toBe(1);
      await store.close();
      await expect(waiting).rejects.toBeInstanceOf(StoreUnavailable);
      await expect(store.take([take])).rejects.toBeInstanceOf(StoreUnavailable);
      await expect(store.give("r0.0.abc")).rejects.toBeInstanceOf(StoreUnavailable);
      expect(store.ready).toBe(false);
      await expect.poll(() => connectionsTo(first), soon).toBe(0);
      await store.close();
    } finally {
      await proxy.close();
    }
  });

  it("leaves none either if it comes before the first connection", async () => {
    const store = open(first.url);
    const early = store.take([take]);
    await store.close();
    await expect(early).rejects.toBeInstanceOf(StoreUnavailable);
    // Were there one, it would be there by now.
    await open(first.url).connected();
    await expect.poll(() => connectionsTo(first), soon).toBe(1);
  });

  it("leaves none either if it switches to other servers at that moment", async () => {
    const own = await startServer({ flavor: "redis" });
    try {
      const store = open(first.url);
      await store.connected();
      const going = store.useServers(own.url).catch((error: unknown) => error);
      await store.close();
      await going;
      expect(store.ready).toBe(false);
      await expect.poll(async () => (await connectionsTo(first)) + (await connectionsTo(own)), soon).toBe(0);
    } finally {
      await own.close();
    }
  });
});
