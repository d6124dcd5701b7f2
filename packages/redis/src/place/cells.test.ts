import { startServer, type TestServer } from "@sluice/test-servers";
import { createLimiter, type Limiter } from "sluice";
import { compileTestLimit, resolvedLimit, testWindow } from "sluice/testing";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { RedisCounters } from "../redis-counters.ts";
import { type Cell, findCell } from "./cells.ts";

/** Servers notice the end of a connection in their own time. */
const soon = { timeout: 30_000 };

function by(dimensions: readonly string[], subject: string): ReturnType<typeof resolvedLimit> {
  const limit = compileTestLimit({ algorithm: "gcra", windows: [testWindow(1, 1000)], by: dimensions });
  return resolvedLimit(limit, subject);
}

describe("the cell of a counter", () => {
  const cell = (name: string, values: Cell["values"]): { cell: Cell } => ({ cell: { name, servers: "", values } });
  const cells = [cell("big", { tenant: ["acme", "a|b"], user: ["root"] }), cell("other", { tenant: ["acme", "bit"] })];
  const findCellName = (dimensions: readonly string[], subject: string): string | undefined =>
    findCell(by(dimensions, subject), cells)?.cell.name;

  it("is the first that has one of the values", () => {
    expect(findCellName(["tenant"], "acme")).toBe("big");
    expect(findCellName(["tenant"], "bit")).toBe("other");
    expect(findCellName(["tenant"], "small")).toBeUndefined();
    expect(findCellName(["user"], "root")).toBe("big");
    expect(findCellName(["endpoint"], "acme")).toBeUndefined();
    expect(findCellName([], "")).toBeUndefined();
  });

  it("is found wherever the dimension stands, and with bars in its value", () => {
    expect(findCellName(["tenant", "user"], "acme|u1")).toBe("big");
    expect(findCellName(["user", "tenant"], "u1|acme")).toBe("big");
    expect(findCellName(["user", "tenant"], "acme|u1")).toBeUndefined();
    expect(findCellName(["tenant"], "a|b")).toBe("big");
    expect(findCellName(["tenant", "user"], "a\\|b|u1")).toBe("big");
    expect(findCellName(["tenant", "user"], "a|b")).toBeUndefined();
  });
});

describe("counters in cells", () => {
  let main: TestServer;
  let own: TestServer;
  let counters: RedisCounters;
  let limiter: Limiter;

  beforeAll(async () => {
    [main, own] = await Promise.all([startServer({ flavor: "valkey" }), startServer({ flavor: "redis" })]);
  });
  afterAll(() => Promise.all([main.close(), own.close()]));
  beforeEach(async () => {
    await Promise.all([main.command("FLUSHALL"), own.command("FLUSHALL")]);
  });
  afterEach(() => limiter.close());

  async function open(limits: readonly Record<string, unknown>[], cell: Pick<Cell, "values" | "tiers">): Promise<void> {
    const cells = [{ name: "own", servers: own.url, ...cell }];
    counters = new RedisCounters({ servers: main.url, cells, deadlineMs: 5000 });
    await counters.connected();
    limiter = createLimiter({ policies: { policies: [{ id: "p", limits }] }, counters });
  }

  const keysOn = async (server: TestServer): Promise<number> => Number(await server.command("DBSIZE"));
  const both = async (): Promise<readonly [main: number, own: number]> => [await keysOn(main), await keysOn(own)];

  it("live on separate servers by value, and all others on the main ones", async () => {
    await open([{ by: "tenant", windows: "2/h" }], { values: { tenant: ["acme"] } });
    const check = async (tenant: string): Promise<boolean> => (await limiter.check({ dimensions: { tenant } })).allowed;
    expect(await check("acme")).toBe(true);
    expect(await both()).toEqual([0, 1]);
    expect(await check("small")).toBe(true);
    expect(await both()).toEqual([1, 1]);
    expect([await check("acme"), await check("acme"), await check("small")]).toEqual([true, false, true]);
    expect(counters.stats.shards).toMatchObject([
      { name: `${main.host}:${main.port}`, cell: undefined },
      { name: `${own.host}:${own.port}`, cell: "own" },
    ]);
    const found = (tenant: string) => counters.findShard(by(["tenant"], tenant));
    expect([found("acme"), found("small")]).toEqual(
      counters.stats.shards.map(({ name, cell }) => ({ name, cell })).reverse(),
    );
  });

  it("live on separate servers by the tier whose windows limit them", async () => {
    await open([{ by: "user", windows: "1/h", tiers: { gold: { windows: "3/h" } } }], { tiers: ["gold"] });
    await limiter.check({ dimensions: { user: "u1", tier: "gold" } });
    expect(await both()).toEqual([0, 1]);
    await limiter.check({ dimensions: { user: "u2", tier: "tin" } });
    expect(await both()).toEqual([1, 1]);
  });

  it("live there even if two limits share a counter, and one of them does the charging", async () => {
    const tiers = { gold: { windows: "3/h" } };
    await open(
      [
        { by: "user", windows: "1/h", tiers },
        { by: "user", windows: "2/h", tiers },
      ],
      { tiers: ["gold"] },
    );
    await limiter.check({ dimensions: { user: "u1", tier: "gold" } });
    expect(await both()).toEqual([0, 1]);
  });

  it("are taken with those on other servers all or none, whichever of them denies", async () => {
    await open(
      [
        { name: "user", by: ["user"], windows: "3/h" },
        { name: "tenant", by: ["tenant"], windows: "3/h" },
      ],
      { values: { tenant: ["acme"] } },
    );
    const check = (user: string, tenant: string): ReturnType<Limiter["check"]> =>
      limiter.check({ dimensions: { user, tenant } });
    const remaining = async (user: string, tenant: string): Promise<readonly unknown[]> => {
      const { limits } = await limiter.explain({ dimensions: { user, tenant } });
      return limits.map(({ scope, windows }) => [scope, windows[0]!.remaining]);
    };
    for (let i = 0; i < 3; i++) expect((await check("u1", "acme")).allowed).toBe(true);
    expect(await both()).toEqual([expect.any(Number), expect.any(Number)]);
    // The tenant, in its cell, denies: another user, on the main servers, is not charged. Then the other way round.
    for (let i = 0; i < 5; i++) expect((await check("u2", "acme")).allowed).toBe(false);
    expect(await remaining("u2", "acme")).toEqual([
      ["user", 3],
      ["tenant", 0],
    ]);
    await limiter.reset({ dimensions: { user: "nobody", tenant: "acme" } });
    for (let i = 0; i < 5; i++) expect((await check("u1", "acme")).allowed).toBe(false);
    expect(await remaining("u1", "acme")).toEqual([
      ["user", 0],
      ["tenant", 3],
    ]);
  });

  it("are given back, charged and reset where they are, with those on other servers", async () => {
    await open(
      [
        { name: "user", by: ["user"], windows: "3/h" },
        { name: "tenant", by: ["tenant"], windows: "3/h" },
      ],
      { values: { tenant: ["acme"] } },
    );
    const request = { dimensions: { user: "u1", tenant: "acme" } };
    const remaining = async (): Promise<readonly number[]> =>
      (await limiter.explain(request)).limits.map(({ windows }) => windows[0]!.remaining);
    const { receipt } = await limiter.check({ ...request, receipt: true });
    expect(await remaining()).toEqual([2, 2]);
    expect(await limiter.give(receipt!)).toBe(true);
    expect(await remaining()).toEqual([3, 3]);
    expect(await limiter.give(receipt!)).toBe(false);
    await limiter.charge({ ...request, cost: 2 });
    expect(await remaining()).toEqual([1, 1]);
    await limiter.reset(request);
    expect(await remaining()).toEqual([3, 3]);
  });

  it("leave the main servers' counters served while theirs are unavailable", async () => {
    const dying = await startServer({ flavor: "valkey" });
    try {
      counters = new RedisCounters({
        servers: main.url,
        cells: [{ name: "own", servers: dying.url, values: { tenant: ["acme"] } }],
        deadlineMs: 1000,
      });
      await counters.connected();
      const limits = [{ by: "tenant", windows: "9/h" }];
      limiter = createLimiter({ policies: { policies: [{ id: "p", limits, on_failure: "closed" }] }, counters });
      await dying.kill();
      await expect.poll(() => counters.ready, soon).toBe(false);
      const [away, here] = await Promise.all(
        ["acme", "small"].map((tenant) => limiter.check({ dimensions: { tenant } })),
      );
      expect(away).toMatchObject({ allowed: false, degraded: "storage_unavailable" });
      expect(here).toMatchObject({ allowed: true, degraded: undefined });
    } finally {
      await dying.close();
    }
  });
});
