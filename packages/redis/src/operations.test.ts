import { flavors, startCluster, startServer } from "@sluice/test-servers";
import { StoreUnavailable } from "sluice";
import { compileTestLimit, resolvedLimit, testWindow } from "sluice/testing";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { RedisCounters } from "./redis-counters.ts";

const algorithms = ["gcra", "token_bucket", "leaky_bucket", "fixed_window", "sliding_window", "sliding_log"] as const;

/** Where they are tried: everything in one place, and everything spread out. */
const places = flavors.flatMap((flavor) => [
  {
    name: `one ${flavor} server`,
    start: async () => {
      const server = await startServer({ flavor });
      return { servers: server.url, close: () => server.close() };
    },
  },
  {
    name: `a ${flavor} cluster`,
    start: async () => {
      const cluster = await startCluster({ flavor });
      const servers = `redis+cluster://${cluster.nodes.map(({ host, port }) => `${host}:${port}`).join(",")}`;
      return { servers, close: () => cluster.close() };
    },
  },
]);

describe.each(places)("on $name", ({ start }) => {
  let place: { readonly servers: string; close(): Promise<void> };
  let store: RedisCounters;
  let number = 0;

  beforeAll(async () => {
    place = await start();
  }, 60_000);
  afterAll(() => place.close());
  beforeEach(async () => {
    number += 1;
    store = new RedisCounters({ servers: place.servers, prefix: `o${number}`, deadlineMs: 5000 });
    await store.connected();
  });
  const opened: RedisCounters[] = [];
  afterEach(async () => {
    for (const one of [store, ...opened.splice(0)]) await one.close();
  });

  // An hour is long enough that nothing drains meanwhile but a thousandth.
  const createLimit = (algorithm: (typeof algorithms)[number], by: string): ReturnType<typeof compileTestLimit> =>
    compileTestLimit({ algorithm, windows: [testWindow(10, 36_000_000)], by: [by], policy: by });
  const all = algorithms.flatMap((algorithm) =>
    ["user", "ip", "endpoint"].map((by) => resolvedLimit(createLimit(algorithm, by), `${by}-1`)),
  );
  const remaining = async (): Promise<readonly number[]> =>
    (await store.peek(all)).outcomes.map((outcome) => outcome.remaining);
  const each = (value: number): readonly number[] => all.map(() => value);

  it("takes from counters wherever they are, and from all or none", async () => {
    expect((await store.take(all)).taken).toBe(true);
    expect(await remaining()).toEqual(each(9));
    const [one, ...others] = all;
    await store.take([{ ...one!, cost: 9 }]);
    expect((await store.take(all)).taken).toBe(false);
    expect(await remaining()).toEqual([0, ...others.map(() => 9)]);
  });

  it("gives back what was taken wherever it was, once", async () => {
    const { receipt } = await store.take(all, { receipt: true });
    expect(receipt).toMatch(/^[\w.+-]+$/);
    expect(await store.give(receipt!)).toBe(true);
    expect(await remaining()).toEqual(each(10));
    expect(await store.give(receipt!)).toBe(false);
    expect(await remaining()).toEqual(each(10));
  });

  it("gives back and resets even as the first calls, waiting for a connection as a take would", async () => {
    const first = (): RedisCounters => {
      const one = new RedisCounters({ servers: place.servers, prefix: `o${number}`, deadlineMs: 5000 });
      opened.push(one);
      return one;
    };
    const { receipt } = await store.take(all, { receipt: true });
    expect(await first().give(receipt!)).toBe(true);
    expect(await remaining()).toEqual(each(10));
    await store.take(all);
    await first().reset(all);
    expect(await remaining()).toEqual(each(10));
  });

  it("gives nothing back for an invalid receipt", async () => {
    for (const text of ["", "x", "r0.0.unknown", "r9.0.a", "r0.99.a", "r0.0.a+r0.0.b", "r-1.0.a", "r0.0.a\r\nDEL x"])
      expect(await store.give(text)).toBe(false);
  });

  it("answers an id from memory, wherever its counters are", async () => {
    const first = await store.take(all, { id: "order-1", fingerprint: "f" });
    const again = await store.take(all, { id: "order-1", fingerprint: "f" });
    expect([first.taken, first.replayed, again.taken, again.replayed]).toEqual([true, false, true, true]);
    expect(again.outcomes.map((one) => one.remaining)).toEqual(first.outcomes.map((one) => one.remaining));
    expect(await remaining()).toEqual(each(9));
    await expect(store.take(all, { id: "order-1", fingerprint: "g" })).rejects.toMatchObject({
      code: "idempotency_conflict",
    });
    expect(await remaining()).toEqual(each(9));
  });

  it("charges after the fact, into debt if it must", async () => {
    await store.charge(all);
    expect(await remaining()).toEqual(each(9));
    await store.charge(all.map((one) => ({ ...one, cost: 12 })));
    expect(await remaining()).toEqual(each(0));
    expect((await store.take([all[0]!])).taken).toBe(false);
  });

  it("gives back without a receipt, wherever counters are", async () => {
    await store.charge(all.map((one) => ({ ...one, cost: 14 })));
    await store.charge(all.map((one) => ({ ...one, cost: -7 })));
    expect(await remaining()).toEqual(each(3));
    await store.charge(all.map((one) => ({ ...one, cost: -100_000 })));
    expect(await remaining()).toEqual(each(10));
  });

  it("blocks wherever marks are, until a reset", async () => {
    const blockable = all.map((one, i) => ({ ...one, limit: { ...one.limit, blockable: i !== 1 } }));
    await store.block(blockable, 60_000);
    const fits = async (): Promise<readonly string[]> => (await store.peek(blockable)).outcomes.map((one) => one.fits);
    expect(await fits()).toEqual(blockable.map((_, i) => (i === 1 ? "now" : "blocked")));
    for (const one of blockable.filter((_, i) => i !== 1)) {
      const { taken, outcomes } = await store.take([one]);
      expect(taken).toBe(false);
      expect(outcomes[0]!.retryAfterMs).toBeLessThanOrEqual(60_000);
    }
    await store.reset(blockable);
    expect(await fits()).toEqual(each(0).map(() => "now"));
    await store.block([all[0]!], 60_000);
    expect((await store.take([all[0]!])).taken, "of limits that do not look, none").toBe(true);
  });

  it("forgets counters that are reset, and no others", async () => {
    await store.take(all);
    await store.take(all.map((one) => ({ ...one, subject: "another" })));
    await store.reset(all.slice(0, 2));
    expect(await remaining()).toEqual([10, 10, ...all.slice(2).map(() => 9)]);
    await store.reset(all);
    expect(await remaining()).toEqual(each(10));
    expect((await store.peek([{ ...all[0]!, subject: "another" }])).outcomes[0]!.remaining).toBe(9);
  });

  it("reads how each window of a counter stands", async () => {
    const windows = [testWindow(10, 36_000_000), testWindow(100, 360_000_000)];
    const limit = compileTestLimit({ algorithm: "fixed_window", windows });
    await store.take([resolvedLimit(limit, "u1", 3)]);
    const readings = await store.read(resolvedLimit(limit, "u1"));
    expect(readings.map((one) => [one.window, one.remaining, one.state])).toEqual([
      [limit.windows[0], 7, { count: 3 }],
      [limit.windows[1], 97, { count: 3 }],
    ]);
    const [unused] = await store.read(all[0]!);
    expect(unused).toMatchObject({ remaining: 10, state: { aheadMs: 0 } });
  });

  it("rejects everything with the same error once it is closed", async () => {
    await store.close();
    const asked: readonly Promise<unknown>[] = [
      store.take(all),
      store.peek(all),
      store.charge(all),
      store.block([{ ...all[0]!, limit: { ...all[0]!.limit, blockable: true } }], 1000),
      store.reset(all),
      store.read(all[0]!),
      store.give("r0.0.abc"),
      store.lease([all[0]!], { want: 1, holdMs: 1000 }),
    ];
    for (const one of asked) await expect(one).rejects.toBeInstanceOf(StoreUnavailable);
  });
});
