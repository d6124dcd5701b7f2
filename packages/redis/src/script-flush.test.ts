import { flavors, startServer, type TestServer } from "@sluice/test-servers";
import { compileTestLimit, resolvedLimit, testWindow } from "sluice/testing";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { RedisCounters } from "./redis-counters.ts";
import { scriptsOnTestTime, testTime } from "./testing/scripts-on-test-time.ts";

const hourMs = 3_600_000;
const algorithms = ["gcra", "fixed_window", "sliding_window", "sliding_log"] as const;

describe.each(flavors)("a %s server that forgets its scripts", (flavor) => {
  let server: TestServer;
  let store: RedisCounters;
  beforeAll(async () => {
    server = await startServer({ flavor });
  });
  afterAll(() => server.close());
  beforeEach(async () => {
    await server.command("FLUSHALL");
    await server.command("SCRIPT", "FLUSH");
    // At a moment that does not move, so that nothing drains and every unit can be counted.
    store = new RedisCounters({ servers: server.url, deadlineMs: 10_000, tune: scriptsOnTestTime(testTime()) });
    await store.connected();
    return () => store.close();
  });

  it("is sent each script once, on its first use", async () => {
    const take = resolvedLimit(compileTestLimit({ algorithm: "gcra", windows: [testWindow(100, hourMs)] }), "u1");
    expect(store.stats.loads).toBe(0);
    for (let i = 0; i < 5; i++) await store.take([take]);
    expect(store.stats.loads).toBe(1);
    const { receipt } = await store.take([take], { receipt: true });
    await store.peek([take]);
    await store.charge([take]);
    await store.give(receipt!);
    expect(store.stats.loads).toBe(5);
    for (let i = 0; i < 3; i++) {
      await store.give((await store.take([take], { receipt: true })).receipt!);
      await store.peek([take]);
      await store.charge([take]);
    }
    expect(store.stats.loads).toBe(5);
  });

  it("is asked for the others' scripts by their digest alone, if another process sent them", async () => {
    const take = resolvedLimit(compileTestLimit({ algorithm: "gcra", windows: [testWindow(100, hourMs)] }), "u1");
    await store.take([take]);
    const other = new RedisCounters({ servers: server.url, deadlineMs: 5000, tune: scriptsOnTestTime(testTime()) });
    await other.connected();
    expect((await other.take([take])).outcomes[0]!.remaining).toBe(98);
    expect(other.stats.loads).toBe(0);
    await other.close();
  });

  it.each(algorithms)("loses and doubles nothing while it forgets under load: %s", async (algorithm) => {
    const limit = compileTestLimit({ algorithm, windows: [testWindow(1_000_000, 4_000_000)] });
    const take = resolvedLimit(limit, "u1");
    let flushes = 0;
    let done = false;
    const flushing = (async () => {
      while (!done) {
        await server.command("SCRIPT", "FLUSH", flushes % 2 === 0 ? "SYNC" : "ASYNC");
        flushes += 1;
        await new Promise((resolve) => setTimeout(resolve, 2));
      }
    })();
    let taken = 0;
    for (let round = 0; round < 60; round++) {
      const answers = await Promise.all([
        ...Array.from({ length: 40 }, () => store.take([take])),
        ...Array.from({ length: 5 }, () => store.take([take], { receipt: true })),
      ]);
      taken += answers.filter((answer) => answer.taken).length;
      await store.charge([take]);
      taken += 1;
      const given = await Promise.all(
        answers.slice(40, 42).map(async ({ receipt }) => ((await store.give(receipt!)) ? 1 : 0)),
      );
      taken -= given.reduce((sum: number, one) => sum + one, 0);
    }
    done = true;
    await flushing;
    expect(taken).toBe(60 * (46 - 2));
    expect(flushes).toBeGreaterThan(5);
    expect(store.stats.loads).toBeGreaterThan(5);
    expect(store.stats.failedCalls).toBe(0);
    expect(1_000_000 - (await store.peek([take])).outcomes[0]!.remaining).toBe(taken);
    expect(store.stats.timeouts + store.stats.retries).toBe(0);
  });
});
