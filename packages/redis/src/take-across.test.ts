import { createFaultyProxy, startCluster, startServer, type TestServer } from "@sluice/test-servers";
import type { ResolvedLimit } from "sluice/store";
import { compileTestLimit, resolvedLimit, testWindow } from "sluice/testing";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { createLaneTags, findHome, laneNumber } from "./place/lanes.ts";
import { RedisCounters } from "./redis-counters.ts";

/** A request whose counters live in two places: by tenant in a cell, by ip with all others. */

const hourMs = 3_600_000;
const tenant = compileTestLimit({ algorithm: "gcra", windows: [testWindow(10, hourMs)], by: ["tenant"], policy: "t" });
const ip = compileTestLimit({ algorithm: "gcra", windows: [testWindow(1, hourMs)], by: ["ip"], policy: "i" });
const shadow = compileTestLimit({ algorithm: "gcra", windows: [testWindow(1000, hourMs)], by: ["ip"], policy: "s" });
const asked = [resolvedLimit(tenant, "acme"), resolvedLimit(ip, "1.1.1.1")];

let main: TestServer;
let cell: TestServer;
let stores: RedisCounters[] = [];

beforeAll(async () => {
  [main, cell] = await Promise.all([startServer({ flavor: "valkey" }), startServer({ flavor: "redis" })]);
});
afterAll(() => Promise.all([main.close(), cell.close()]));
beforeEach(() => Promise.all([main.command("FLUSHALL"), cell.command("FLUSHALL")]));
afterEach(async () => {
  await Promise.all(stores.map((store) => store.close()));
  stores = [];
});

async function open(own: string = cell.url, deadlineMs = 2000): Promise<RedisCounters> {
  const cells = [{ name: "own", servers: own, values: { tenant: ["acme"] } }];
  const store = new RedisCounters({ servers: main.url, cells, deadlineMs });
  stores.push(store);
  await store.connected();
  return store;
}

async function remaining(store: RedisCounters): Promise<readonly number[]> {
  return (await store.peek(asked)).outcomes.map((outcome) => outcome.remaining);
}

describe("a request across places", () => {
  it("charges all of them or none", async () => {
    const store = await open();
    expect((await store.take(asked)).taken).toBe(true);
    expect(await remaining(store)).toEqual([9, 0]);
    for (let i = 0; i < 5; i++) {
      const { taken, outcomes } = await store.take(asked);
      expect([taken, outcomes.map(({ fits }) => fits)]).toEqual([false, ["now", "later"]]);
    }
    expect(await remaining(store)).toEqual([9, 0]);
  });

  it("notes a distinct value only if every other place has room", async () => {
    const store = await open();
    const users = compileTestLimit({
      algorithm: "fixed_window",
      windows: [testWindow(2, hourMs)],
      by: ["tenant"],
      distinct: "user",
    });
    const agents = compileTestLimit({
      algorithm: "fixed_window",
      windows: [testWindow(1, hourMs)],
      by: ["ip"],
      distinct: "agent",
    });
    const both = (user: string, ...more: readonly ResolvedLimit[]) => [
      { ...resolvedLimit(users, "acme"), value: user },
      ...more,
    ];
    const left = async (limit: ResolvedLimit) => (await store.peek([limit])).outcomes[0]!.remaining;
    const [newUser] = both("new");
    const agentFrom = (from: string, agent: string) => ({ ...resolvedLimit(agents, from), value: agent });

    expect((await store.take(both("a", resolvedLimit(ip, "1.1.1.1")))).taken).toBe(true);
    for (let i = 0; i < 3; i++)
      expect((await store.take(both("b", resolvedLimit(ip, "1.1.1.1")))).taken, "the address has no room").toBe(false);
    expect(await left(newUser!), "b was not noted").toBe(1);

    expect((await store.take(both("a", agentFrom("2.2.2.2", "curl")))).taken).toBe(true);
    for (let i = 0; i < 3; i++)
      expect((await store.take(both("c", agentFrom("2.2.2.2", "wget")))).taken, "a second agent").toBe(false);
    expect(await left(newUser!), "c was not noted").toBe(1);
    expect((await store.take(both("d", agentFrom("3.3.3.3", "curl")))).taken).toBe(true);
    for (let i = 0; i < 3; i++)
      expect((await store.take(both("e", agentFrom("4.4.4.4", "curl")))).taken, "a third user").toBe(false);
    expect(await left(agentFrom("4.4.4.4", "x")), "no agent was noted").toBe(1);
  });

  it("gives back by a receipt all but distinct values", async () => {
    const store = await open();
    const users = compileTestLimit({
      algorithm: "fixed_window",
      windows: [testWindow(2, hourMs)],
      by: ["tenant"],
      distinct: "user",
    });
    const user = { ...resolvedLimit(users, "acme"), value: "a" };
    const { receipt } = await store.take([user, resolvedLimit(ip, "1.1.1.1")], { receipt: true });
    expect(await store.give(receipt!)).toBe(true);
    const after = await store.peek([{ ...user, value: "b" }, resolvedLimit(ip, "1.1.1.1")]);
    expect(after.outcomes.map((one) => one.remaining)).toEqual([1, 1]);
    const hold = await store.take([user, resolvedLimit(ip, "1.1.1.1")], { receipt: true, holdMs: 5000 });
    expect(await store.holds.commit(hold.receipt!, 0, true)).toMatchObject({ state: "settled" });
    expect((await store.peek([resolvedLimit(ip, "1.1.1.1")])).outcomes[0]!.remaining).toBe(1);
  });

  it("leaves nothing behind for long but its counters", async () => {
    const store = await open();
    await store.take(asked);
    expect([await cell.command("KEYS", "*!*"), await main.command("KEYS", "*!*")]).toEqual([[expect.any(String)], []]);
    const [mark] = (await cell.command("KEYS", "*!*")) as string[];
    expect(Number(await cell.command("PTTL", mark!))).toBeLessThanOrEqual(2 * (2000 + 5000));
    // Those of receipts, by which windows of other kinds are held.
    const counted = compileTestLimit({ algorithm: "fixed_window", windows: [testWindow(9, hourMs)], by: ["tenant"] });
    await store.take([resolvedLimit(counted, "acme"), resolvedLimit(ip, "2.2.2.2")]);
    const keys = (await cell.command("KEYS", "s:r:*")) as string[];
    expect(keys).toHaveLength(1);
    for (const key of keys) expect(Number(await cell.command("PTTL", key))).toBeLessThan(10_000);
  });

  it("holds nothing that is never given back, even next to policies in shadow mode", async () => {
    const store = await open();
    await store.take([...asked, resolvedLimit(shadow, "1.1.1.1", 1, 1)]);
    expect([await cell.command("KEYS", "*!*"), await main.command("KEYS", "*!*")]).toEqual([[expect.any(String)], []]);
  });

  it("gives back what it took itself, with many in flight at once and others between them", async () => {
    const tenants = ["acme", "bolt", "core"] as const;
    const cells = [{ name: "own", servers: cell.url, values: { tenant: tenants } }];
    const store = new RedisCounters({ servers: main.url, cells, deadlineMs: 5000, maxBatch: 127 });
    stores.push(store);
    await store.connected();
    const large = compileTestLimit({
      algorithm: "gcra",
      windows: [testWindow(1000, hourMs), testWindow(500, hourMs / 2)],
      by: ["tenant"],
      policy: "large",
    });
    const byIp = compileTestLimit({
      algorithm: "gcra",
      windows: [testWindow(50, hourMs)],
      by: ["ip"],
      policy: "by-ip",
    });
    const numbers = Array.from({ length: 18 }, (_, i) => i);
    const chooseCost = (i: number): number => 1 + (i % 5);
    const isDenied = (i: number): boolean => i % 4 !== 0;
    for (const i of numbers) if (isDenied(i)) await store.take([resolvedLimit(byIp, `ip${i}`, 50)]);
    const admitted = new Map<string, number>();
    // One more tenant in each round, so that marks begin at different times.
    for (const round of [1, 2, 3]) {
      const chooseTenant = (i: number): string => tenants[i % round]!;
      // Parts that denied last are asked first, so another store asks each time.
      const fresh = new RedisCounters({ servers: main.url, cells, deadlineMs: 5000, maxBatch: 127 });
      stores.push(fresh);
      await fresh.connected();
      const answers = await Promise.all(
        numbers.flatMap((i) => [
          fresh.take([
            resolvedLimit(large, chooseTenant(i), chooseCost(i)),
            resolvedLimit(byIp, `ip${i}`, chooseCost(i)),
          ]),
          fresh.take([resolvedLimit(large, chooseTenant(i), 1)]),
        ]),
      );
      expect(answers.map(({ taken }) => taken)).toEqual(numbers.flatMap((i) => [!isDenied(i), true]));
      // They travelled together.
      expect(fresh.stats.calls).toBeLessThan(10);
      for (const i of numbers) {
        const charged = 1 + (isDenied(i) ? 0 : chooseCost(i));
        admitted.set(chooseTenant(i), (admitted.get(chooseTenant(i)) ?? 0) + charged);
      }
      for (const [one, total] of admitted) {
        const { outcomes } = await store.peek([resolvedLimit(large, one)]);
        expect([round, one, outcomes[0]!.remaining]).toEqual([round, one, 500 - total]);
      }
    }
  });

  it("gives nothing back if the connection that took it was lost: the server that answers now may not know of it", async () => {
    let connections = 0;
    const store = new RedisCounters({
      servers: main.url,
      cells: [{ name: "own", servers: cell.url, values: { tenant: ["acme"] } }],
      deadlineMs: 20_000,
      onEvent: ({ kind }) => {
        if (kind === "connected") connections += 1;
      },
    });
    stores.push(store);
    await store.connected();
    await store.take([resolvedLimit(ip, "1.1.1.1")]);
    main.pause();
    try {
      const taking = store.take(asked);
      await expect.poll(() => cell.command("DBSIZE"), { timeout: 30_000 }).toBeGreaterThan(0);
      // Its answer comes before the connection ends.
      await cell.command("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes");
      await expect.poll(() => connections, { timeout: 30_000 }).toBe(3);
      main.resume();
      expect((await taking).taken).toBe(false);
    } finally {
      main.resume();
    }
    expect((await store.peek([resolvedLimit(tenant, "acme")])).outcomes[0]!.remaining).toBe(9);
  });

  it("gives a receipt that is good in all of them, once", async () => {
    const store = await open();
    const { receipt } = await store.take(asked, { receipt: true });
    expect(await store.give(receipt!)).toBe(true);
    expect(await remaining(store)).toEqual([10, 1]);
    expect(await store.give(receipt!)).toBe(false);
  });

  it("is given up when its caller gives up, which says nothing of the servers", async () => {
    const proxy = await createFaultyProxy({ host: cell.host, port: cell.port });
    try {
      const store = await open(proxy.url, 60_000);
      proxy.delayMs = 100;
      for (let i = 0; i < 8; i++)
        await expect(store.take(asked, { deadlineMs: 2 })).rejects.toMatchObject({
          // On a busy machine this process may be the one that is late.
          reason: expect.stringMatching(/storage_timeout|process_starved/),
        });
      expect(store.stats.shards.map(({ breaker }) => breaker)).toEqual(["closed", "closed"]);
    } finally {
      await proxy.close();
    }
  });

  it("stays denied if the rest can no longer be asked", async () => {
    const gone = await startServer({ flavor: "valkey" });
    const store = await open(gone.url, 300);
    await store.take([resolvedLimit(ip, "1.1.1.1")]);
    // From now on the one that denied is asked first.
    expect((await store.take(asked)).taken).toBe(false);
    await gone.close();
    expect((await store.take(asked)).taken).toBe(false);
  });

  it("is not changed by a shadow group that cannot be asked", async () => {
    const gone = await startServer({ flavor: "valkey" });
    const store = await open(gone.url, 300);
    await gone.close();
    const inShadow = [resolvedLimit(shadow, "1.1.1.1"), resolvedLimit(tenant, "acme", 1, 1)];
    expect((await store.take(inShadow)).taken).toBe(true);
  });

  it("gives back what was taken when another part fails", async () => {
    const store = await open(cell.url, 300);
    await store.take([resolvedLimit(tenant, "acme", 10)]);
    // Denied once by tenant, so that it is asked first; then by ip, which fails.
    await store.take(asked);
    await cell.command("FLUSHALL");
    main.pause();
    try {
      await expect(store.take(asked)).rejects.toMatchObject({ code: "store_unavailable" });
    } finally {
      main.resume();
    }
    const left = async (): Promise<number> =>
      (await store.peek([resolvedLimit(tenant, "acme")])).outcomes[0]!.remaining;
    await expect.poll(left, { timeout: 30_000 }).toBe(10);
  });

  it("is answered by its deadline, even if nothing can be given back in time", async () => {
    const store = await open(cell.url, 200);
    await store.take(asked.map((one) => ({ ...one, cost: 1 })));
    cell.pause();
    main.pause();
    try {
      const answered = store.take(asked).then(
        () => "answered",
        () => "answered",
      );
      const patience = new Promise((resolve) => setTimeout(resolve, 5000, "hangs"));
      expect(await Promise.race([answered, patience])).toBe("answered");
    } finally {
      cell.resume();
      main.resume();
    }
  });

  it("separates ids from other ids, from those of its parts, and if two places share a server", async () => {
    for (const own of [cell.url, main.url]) {
      await Promise.all([main.command("FLUSHALL"), cell.command("FLUSHALL")]);
      const store = await open(own);
      const inShadow = [...asked, resolvedLimit(shadow, "1.1.1.1", 1, 1)];
      const options = { fingerprint: "f" };
      expect((await store.take(inShadow, { ...options, id: "x" })).replayed).toBe(false);
      expect((await store.take(inShadow, { ...options, id: "x" })).replayed).toBe(true);
      expect(await remaining(store)).toEqual([9, 0]);
      // Denied, because it is another id: by ip nothing is left.
      expect((await store.take(inShadow, { ...options, id: "x 1" })).taken).toBe(false);
    }
  });

  it("does not give back what an earlier attempt of the same id was allowed", async () => {
    const store = await open();
    expect((await store.take(asked, { id: "x", fingerprint: "f" })).taken).toBe(true);
    // The id is lost in one of the two places, as by a failover.
    await main.command("DEL", "s:i:x");
    expect((await store.take(asked, { id: "x", fingerprint: "f" })).taken).toBe(false);
    expect(await remaining(store)).toEqual([9, 0]);
  });
});

it("in a cluster, gives back what it holds even while its slot is moving, once its keys are in one place", async () => {
  const cluster = await startCluster({ flavor: "valkey", nodeTimeoutMs: 10_000 });
  const lanes = 8;
  const tags = createLaneTags(lanes);
  const findSlot = (one: ResolvedLimit): number => tags[laneNumber(findHome(one), lanes)]!.slot;
  const servers = `redis+cluster://${cluster.nodes.map(({ host, port }) => `${host}:${port}`).join(",")}`;
  const [store, other] = [0, 1].map(() => new RedisCounters({ servers, deadlineMs: 20_000, lanes })) as [
    RedisCounters,
    RedisCounters,
  ];
  stores.push(store, other);
  try {
    await Promise.all([store.connected(), other.connected()]);
    const byTenant = resolvedLimit(tenant, "acme");
    const slot = findSlot(byTenant);
    const from = await cluster.ownerOf(slot);
    // One whose counter is on another node, which then lets it wait.
    const candidates = Array.from({ length: 50 }, (_, i) => resolvedLimit(ip, `10.0.0.${i}`));
    const owners = await Promise.all(candidates.map((one) => cluster.ownerOf(findSlot(one))));
    const index = owners.findIndex((owner) => owner !== from);
    const [byIp, away] = [candidates[index]!, owners[index]!];
    const to = cluster.nodes.find((node) => node !== from && node !== away)!;
    await other.take([byIp]);
    away.pause();
    const taking = store.take([byTenant, byIp]);
    const keys = async (): Promise<string[]> => (await from.command("CLUSTER", "GETKEYSINSLOT", slot, 100)) as string[];
    await expect.poll(async () => (await keys()).length, { timeout: 30_000 }).toBe(2);
    const isMark = (key: string): boolean => key.includes("!");
    const [marks, counters] = [(await keys()).filter(isMark), (await keys()).filter((key) => !isMark(key))];
    await cluster.beginMigration(slot, to);
    await cluster.moveKeys(slot, to, marks);
    away.resume();
    const early = await Promise.race([
      taking.then(() => "answered"),
      new Promise((go) => setTimeout(go, 300, "waits")),
    ]);
    expect(early).toBe("waits");
    await cluster.moveKeys(slot, to, counters);
    expect((await taking).taken).toBe(false);
    await cluster.finishMigration(slot, to);
    expect((await other.peek([byTenant])).outcomes[0]!.remaining).toBe(10);
  } finally {
    await cluster.close();
  }
}, 60_000);

it("a receipt of more parts than there are places is void, and asks no server", async () => {
  const store = await open();
  const before = store.stats.loads;
  expect(await store.give(Array.from({ length: 5000 }, (_, i) => `r0.0.x${i}`).join("+"))).toBe(false);
  expect(store.stats.loads).toBe(before);
});

it("as many as a call can hold travel in one, and each is answered for itself", async () => {
  const store = new RedisCounters({ servers: main.url, maxBatch: 127, maxInFlight: 1, deadlineMs: 5000 });
  stores.push(store);
  await store.connected();
  const limit = compileTestLimit({ algorithm: "gcra", windows: [testWindow(2, hourMs)], policy: "many" });
  const answers = await Promise.all(
    Array.from({ length: 1500 }, (_, i) => store.take([resolvedLimit(limit, `u${i % 500}`)])),
  );
  expect(answers.map(({ taken }) => taken)).toEqual(Array.from({ length: 1500 }, (_, i) => i < 1000));
  expect(store.stats.questions / store.stats.calls).toBeGreaterThan(120);
});

it("a batch larger than a call can hold is refused when the counters are made", () => {
  expect(() => new RedisCounters({ servers: main.url, maxBatch: 100_000 })).toThrow(/maxBatch must be .* 127/);
  expect(() => new RedisCounters({ servers: main.url, prefix: "{app}" })).toThrow(/prefix must be/);
});
