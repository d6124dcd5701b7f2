import {
  createFaultyProxy,
  type FaultyProxy,
  startCluster,
  startSentinel,
  startServer,
  type TestServer,
} from "@sluice/test-servers";
import { compileTestLimit, resolvedLimit, testWindow } from "sluice/testing";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { RedisCounters } from "./redis-counters.ts";
import type { RedisCountersOptions } from "./redis-counters-options.ts";
import type { RedisEvent } from "./site.ts";

/** How questions find their servers, and whom failures are blamed on. */

const limit = compileTestLimit({ algorithm: "fixed_window", windows: [testWindow(1e6, 365 * 24 * 3_600_000)] });
const take = (subject = "u") => [resolvedLimit(limit, subject)];
const soon = { timeout: 30_000, interval: 20 };
const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

let stores: RedisCounters[] = [];
let events: RedisEvent[] = [];
afterEach(async () => {
  await Promise.all(stores.map((store) => store.close()));
  stores = [];
  events = [];
});

function open(servers: string, options: Partial<RedisCountersOptions> = {}): RedisCounters {
  const store = new RedisCounters({ servers, ...options, onEvent: (event) => events.push(event) });
  stores.push(store);
  return store;
}

const lost = (): ReadonlySet<string> =>
  new Set(events.flatMap((event) => (event.kind === "disconnected" ? [event.shard] : [])));
const opened = (): readonly RedisEvent[] =>
  events.filter((event) => event.kind === "breaker" && event.state === "open");

describe("one server behind a slow or broken line", () => {
  let server: TestServer;
  let proxy: FaultyProxy;
  beforeAll(async () => {
    server = await startServer({ flavor: "valkey" });
  });
  beforeEach(async () => {
    proxy = await createFaultyProxy(server);
  });
  afterEach(() => proxy.close());
  afterAll(() => server.close());

  it("is not blamed if a repeated question was answered the first time", async () => {
    const store = open(proxy.url, { deadlineMs: 400 });
    await store.connected();
    // Once each, so that the server knows the scripts.
    await store.peek(take());
    await store.take(take(), { id: "first", fingerprint: "f" });
    proxy.delayMs = 300;
    for (let round = 0; round < 4; round++) {
      await Promise.all(
        Array.from({ length: 2 }, async (_, i) => {
          await pause(5 * i);
          await store.peek(take(`u${i}`));
          await store.take(take(`u${i}`), { id: `r${round}-${i}`, fingerprint: "f" });
        }),
      );
    }
    expect(store.stats.retries).toBeGreaterThan(0);
    expect([store.stats.failedCalls, opened()]).toEqual([0, []]);
    // Repeated, and charged once: 4 rounds of one cost each.
    proxy.heal();
    proxy.delayMs = 0;
    expect((await store.peek(take("u0"))).outcomes[0]!.remaining).toBe(1e6 - 4);
  });

  it("is found out although some questions have a lot of patience", async () => {
    const patient = { ...limit, policy: { ...limit.policy, deadlineMs: 30_000 } };
    const store = open(proxy.url, { deadlineMs: 25 });
    await store.connected();
    await store.take(take());
    proxy.blackhole();
    const asked: Promise<unknown>[] = [];
    for (let i = 0; i < 400 && opened().length === 0; i++) {
      asked.push(store.take(i % 4 === 0 ? [resolvedLimit(patient, "u")] : take()).catch((error: unknown) => error));
      await pause(5);
    }
    expect(opened()).toHaveLength(1);
    await store.close();
    await Promise.all(asked);
  });

  it("that refuses a command is not taken for one that does not answer", async () => {
    await server.command("ACL", "SETUSER", "plain", "on", ">secret", "~*", "+@all", "-unlink");
    const store = open(proxy.url.replace("redis://", "redis://plain:secret@"), { deadlineMs: 2000 });
    await store.connected();
    for (let i = 0; i < 8; i++) await expect(store.reset(take())).rejects.toMatchObject({ code: "store_unavailable" });
    expect(opened()).toEqual([]);
    expect((await store.take(take())).taken).toBe(true);
  });

  it("finishes its pending gives and resets before it is left for another", async () => {
    const other = await startServer({ flavor: "valkey" });
    try {
      const store = open(proxy.url, { deadlineMs: 2000 });
      await store.connected();
      const slow = compileTestLimit({ algorithm: "gcra", windows: [testWindow(10, 3_600_000)] });
      const { receipt } = await store.take([resolvedLimit(slow, "u")], { receipt: true });
      proxy.delayMs = 200;
      const giving = store.give(receipt!);
      await store.useServers(other.url);
      expect(await giving).toBe(true);
    } finally {
      await other.close();
    }
  });

  it("is waited for as long as enforced policies say, whatever a policy in shadow mode says", async () => {
    const hasty = { ...limit, policy: { ...limit.policy, id: "hasty", deadlineMs: 1 } };
    const store = open(proxy.url, { deadlineMs: 5000 });
    await store.connected();
    proxy.delayMs = 50;
    const { taken } = await store.take([...take(), resolvedLimit(hasty, "u", 1, 1)]);
    expect(taken).toBe(true);
  });

  it("is asked by a deadline that is a number", () => {
    for (const deadlineMs of [Number.NaN, 0, -1, 1e9])
      expect(() => open(proxy.url, { deadlineMs })).toThrow(/deadlineMs/);
    expect(() => open(proxy.url, { lanes: 0 })).toThrow(/lanes/);
  });
});

describe("checks that come together", () => {
  let server: TestServer;
  beforeAll(async () => {
    server = await startServer({ flavor: "valkey" });
  });
  afterAll(() => server.close());

  it("leave as soon as a call is full, one call in a turn of the event loop, and the rest at the end of turns", async () => {
    const store = open(server.url, { maxBatch: 10, deadlineMs: 10_000 });
    await store.connected();
    const arrivals = compileTestLimit({ algorithm: "gcra", windows: [testWindow(1000, 3_600_000)] });
    const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));
    const ask = (count: number) =>
      Array.from({ length: count }, (_, i) => store.take([resolvedLimit(arrivals, `u${i}`)]));
    await Promise.all(ask(1));
    const before = store.stats.calls;
    const told: number[] = [];
    const asked = ask(9);
    told.push(store.stats.calls - before);
    asked.push(...ask(1));
    told.push(store.stats.calls - before);
    asked.push(...ask(25));
    told.push(store.stats.calls - before);
    await turn();
    told.push(store.stats.calls - before);
    // Nothing at nine, one at ten; the others are for later turns.
    expect(told).toEqual([0, 1, 1, 1]);
    const answers = await Promise.all(asked);
    expect(answers.every(({ taken }) => taken)).toBe(true);
    expect(store.stats.calls - before).toBe(4);
  });
});

describe("a cluster", () => {
  it("is found from one node under traffic, and no check is rejected or server blamed meanwhile", async () => {
    const cluster = await startCluster({ flavor: "valkey" });
    try {
      const { host, port } = cluster.nodes[0]!;
      const store = open(`redis+cluster://${host}:${port}`, { deadlineMs: 5000 });
      const asked: Promise<unknown>[] = [];
      while (!store.ready) {
        for (let i = 0; i < 10 && asked.length < 2000; i++) asked.push(store.take(take(`u${asked.length}`)));
        await new Promise((resolve) => setImmediate(resolve));
      }
      await Promise.all(asked);
      expect(opened()).toEqual([]);
    } finally {
      await cluster.close();
    }
  });

  it("is not taken apart by a node that knows only part of it, and is ready only as a whole", async () => {
    const args = ["--cluster-require-full-coverage", "no"];
    const cluster = await startCluster({ flavor: "valkey", args });
    try {
      const [first, ...others] = cluster.nodes;
      const store = open(`redis+cluster://${first!.host}:${first!.port}`, { deadlineMs: 2000 });
      await store.connected();
      for (const node of others)
        await first!.command("CLUSTER", "FORGET", String(await node.command("CLUSTER", "MYID")));
      // Lost connections make it look again, and the node that it knows best answers first or later.
      for (let i = 0; i < 4; i++) {
        events.length = 0;
        for (const node of others) await node.command("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes");
        // Until it has noticed, it believes itself as ready as before.
        await expect.poll(lost, soon).toEqual(new Set(others.map(({ host, port }) => `${host}:${port}`)));
        await expect.poll(() => store.ready, soon).toBe(true);
      }
      for (let i = 0; i < 64; i++) expect((await store.take(take(`u${i}`))).taken).toBe(true);
      // Now no node holds some of the slots.
      for (const node of others) await node.command("CLUSTER", "DELSLOTSRANGE", 5461, 10_922).catch(() => undefined);
      const late = open(`redis+cluster://${others[0]!.host}:${others[0]!.port}`, { deadlineMs: 500 });
      await expect(late.connected(700)).rejects.toMatchObject({ code: "store_unavailable" });
      expect(late.ready).toBe(false);
    } finally {
      await cluster.close();
    }
  });
});

it("a primary that was replaced is no longer probed", async () => {
  const deployment = await startSentinel({ flavor: "valkey" });
  try {
    const hosts = deployment.sentinels.map(({ host, port }) => `${host}:${port}`).join(",");
    const servers = `redis+sentinel://${hosts}/${deployment.masterName}`;
    const store = open(servers, { deadlineMs: 25, breaker: { probeEveryMs: 100 } });
    await store.connected();
    const old = await deployment.primary();
    old.pause();
    const asking = setInterval(() => void store.take(take()).catch(() => undefined), 10);
    try {
      await deployment.waitForNewPrimary(old);
      await expect.poll(() => store.ready, soon).toBe(true);
      await expect.poll(() => store.stats.shards[0]?.name, soon).not.toBe(`${old.host}:${old.port}`);
    } finally {
      clearInterval(asking);
      old.resume();
    }
    events.length = 0;
    await pause(1000);
    const ofOld = events.filter((event) => event.kind === "breaker" && event.shard === `${old.host}:${old.port}`);
    expect(ofOld).toEqual([]);
  } finally {
    await deployment.close();
  }
}, 60_000);
