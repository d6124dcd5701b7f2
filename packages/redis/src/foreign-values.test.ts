import { flavors, startServer, type TestServer } from "@sluice/test-servers";
import * as fc from "fast-check";
import type { CompiledLimit, TakeAnswer } from "sluice/store";
import { compileTestLimit, conversationStartMs, resolvedLimit, testWindow } from "sluice/testing";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { blockKey } from "./ask/encode-call.ts";
import { findCode } from "./ask/window-code.ts";
import { createKeyNames } from "./place/key-names.ts";
import { RedisCounters } from "./redis-counters.ts";
import { scriptsOnTestTime, testTime } from "./testing/scripts-on-test-time.ts";

const hourMs = 3_600_000;
const capacity = 5;
const names = createKeyNames("s");

/**
 * One limit for every kind of counter, and a companion that decides whether the arrivals script or the general one is
 * used.
 */
const kinds: readonly { name: string; limit: CompiledLimit; beside?: "gcra" | "sliding_window" }[] = [
  { name: "gcra", limit: createLimit("gcra", hourMs) },
  { name: "gcra with more of it", limit: createLimit("gcra", hourMs), beside: "gcra" },
  { name: "gcra with others", limit: createLimit("gcra", hourMs), beside: "sliding_window" },
  { name: "gcra over months", limit: createLimit("gcra", 90 * 24 * hourMs), beside: "sliding_window" },
  { name: "fixed window", limit: createLimit("fixed_window", hourMs), beside: "sliding_window" },
  { name: "sliding window", limit: createLimit("sliding_window", hourMs), beside: "sliding_window" },
  { name: "sliding log", limit: createLimit("sliding_log", hourMs), beside: "sliding_window" },
];

function createLimit(algorithm: Parameters<typeof compileTestLimit>[0]["algorithm"], perMs: number): CompiledLimit {
  return compileTestLimit({ algorithm, windows: [testWindow(capacity, perMs)], policy: `${algorithm}-${perMs}` });
}

type Plant = (server: TestServer, key: string) => Promise<unknown>;

const set =
  (value: string | Buffer): Plant =>
  (server, key) =>
    server.command("SET", key, value, "PX", hourMs);

/** What no counter of any kind ever holds. */
const garbage: readonly (readonly [name: string, plant: Plant])[] = [
  ["a text", set("hello")],
  ["nothing", set("")],
  ["nan", set("nan")],
  ["inf", set("-inf")],
  ["half a number", set("1.5")],
  ["wnan", set("wnan")],
  ["a letter that means something", set("w")],
  ["bytes", set(Buffer.from([0, 255, 254, 10, 13, 0, 7]))],
  ["17 bytes", set(Buffer.alloc(17, 0xee))],
  ["25 bytes", set(Buffer.alloc(25, 0xee))],
  ["a long text", set("x".repeat(100_000))],
  ["a list", (server, key) => server.command("RPUSH", key, "a", "b")],
  ["a hash", (server, key) => server.command("HSET", key, "a", "b")],
  ["a set", (server, key) => server.command("SADD", key, "a")],
];

/** Values that look like a counter of some kind, but are none of ours. */
const alike: readonly (readonly [name: string, plant: Plant])[] = [
  ["1e5", set("1e5")],
  ["0x10", set("0x10")],
  ["a number in spaces", set("  12 ")],
  ["0", set("0")],
  ["-0", set("-0")],
  ["a small number", set("7")],
  ["a negative number", set("-7")],
  ["an integer far away", set("4503599627370496")],
  ["the largest integer", set("9223372036854775807")],
  ["the smallest integer", set("-9223372036854775808")],
  ["a number with forty digits", set("9".repeat(40))],
  ["a number too large for any", set("1e300")],
  ["a wide number too large for any", set("w1e300")],
  ["a wide number far away", set("w99999999999999999")],
  ["a negative wide number", set("w-5")],
];

/** A tag, followed by any bytes, often invalid numbers. */
const double = fc.oneof(
  fc.constantFrom(Number.NaN, Infinity, -Infinity, 1e300, -1e300, 0, -1, 5e-324, 2 ** 53, -(2 ** 63)),
  fc.double(),
  fc.integer({ min: conversationStartMs - 10 * hourMs, max: conversationStartMs + 10 * hourMs }),
);

function packed(tag: string, doubles: number): fc.Arbitrary<Buffer> {
  return fc.array(double, { minLength: doubles, maxLength: doubles }).map((numbers) => {
    const bytes = Buffer.alloc(1 + 8 * doubles, tag);
    numbers.forEach((one, i) => {
      bytes.writeDoubleLE(one, 1 + 8 * i);
    });
    return bytes;
  });
}

/** Looks like a log except for its times: one in the far future comes before one long past. */
const logOutOfOrder = Buffer.alloc(1 + 8 * 4, "L");
[2 ** 53, 1e12, 1.6e12, 1e12].forEach((one, i) => {
  logOutOfOrder.writeDoubleLE(one, 1 + 8 * i);
});

describe.each(flavors)("a key of a counter that holds something else, on %s", (flavor) => {
  let server: TestServer;
  let store: RedisCounters;
  beforeAll(async () => {
    server = await startServer({ flavor });
    // At a moment that does not move: a number is a time, and which one it is depends on when it is read.
    store = new RedisCounters({
      servers: server.url,
      deadlineMs: 5000,
      // One test that fails is not to fail the others.
      breaker: { failuresInARow: 1e9, minCalls: 1e9 },
      tune: scriptsOnTestTime(testTime()),
    });
    await store.connected();
  });
  afterAll(async () => {
    await store.close();
    await server.close();
  });
  beforeEach(() => server.command("FLUSHALL"));

  const counterKey = (limit: CompiledLimit): string => names.counter(findCode(limit.windows[0]!).code, "u1");
  const ask = (limit: CompiledLimit, beside: (typeof kinds)[number]["beside"]): Promise<TakeAnswer> => {
    const others = beside === undefined ? [] : [resolvedLimit(createLimit(beside, 2 * hourMs), `${Math.random()}`)];
    return store.take([resolvedLimit(limit, "u1"), ...others]);
  };

  /** Absent: the first of five is taken. Just used up: none is. Months ahead, a number may be anything between. */
  function expectAbsentOrUsedUp({ taken, outcomes }: TakeAnswer, limit: CompiledLimit): void {
    const { remaining, retryAfterMs, resetAfterMs } = outcomes[0]!;
    const { perMs } = limit.windows[0]!;
    if (perMs > 24 * hourMs) expect(remaining).toBeLessThanOrEqual(capacity - 1);
    else expect(remaining).toBe(taken ? capacity - 1 : 0);
    expect(retryAfterMs === 0).toBe(taken);
    for (const ms of [retryAfterMs, resetAfterMs]) {
      expect(Number.isSafeInteger(ms)).toBe(true);
      expect(ms).toBeGreaterThanOrEqual(0);
      expect(ms).toBeLessThanOrEqual(2 * perMs);
    }
  }

  it("is a log whose costs are more than can be counted, and counts as nothing", async () => {
    const limit = createLimit("sliding_log", hourMs);
    const bytes = Buffer.alloc(1 + 32, "L");
    [5e-324, conversationStartMs + hourMs + 1, conversationStartMs, 2 ** 53].forEach((one, i) => {
      bytes.writeDoubleLE(one, 1 + 8 * i);
    });
    await server.command("SET", counterKey(limit), bytes, "PX", hourMs);
    expect((await ask(limit, "sliding_window")).outcomes[0]!.remaining).toBe(capacity - 1);
  });

  it("is not the mark of receipts that a credit voids", async () => {
    const before = store.stats.foreign;
    for (const { limit } of kinds) {
      const take = resolvedLimit(limit, "u1");
      await store.take([take], { receipt: true });
      await store.charge([{ ...take, cost: -capacity }]);
    }
    expect(store.stats.foreign).toBe(before);
  });

  describe.each(kinds)("$name", ({ limit, beside }) => {
    it.each(garbage)(
      "%s counts as nothing, is counted in the statistics, and is gone after the next take",
      async (_, plant) => {
        await plant(server, counterKey(limit));
        const before = store.stats.foreign;
        const peeked = await store.peek([resolvedLimit(limit, "u1")]);
        expect(peeked.outcomes[0]!.remaining).toBe(capacity);
        expect(store.stats.foreign).toBe(before + 1);
        const answer = await ask(limit, beside);
        expect([answer.taken, answer.outcomes[0]!.remaining]).toEqual([true, capacity - 1]);
        expect(store.stats.foreign).toBe(before + 2);
        expect((await ask(limit, beside)).outcomes[0]!.remaining).toBe(capacity - 2);
        expect(store.stats.foreign).toBe(before + 2);
        expect(await server.command("PTTL", counterKey(limit))).toBeGreaterThan(0);
      },
    );

    it.each(alike)("%s counts as nothing or as just used up, and is not an error", async (_, plant) => {
      await plant(server, counterKey(limit));
      expectAbsentOrUsedUp(await ask(limit, beside), limit);
      await store.charge([resolvedLimit(limit, "u1")]);
      await store.read(resolvedLimit(limit, "u1"));
      await store.reset([resolvedLimit(limit, "u1")]);
      expect((await ask(limit, beside)).outcomes[0]!.remaining).toBe(capacity - 1);
    });

    it("any bytes are not an error, and the neighbours in the same call are served", async () => {
      const bytes = fc.oneof(
        packed("C", 2),
        packed("S", 3),
        packed("L", 2),
        packed("L", 8),
        fc.uint8Array({ maxLength: 40 }),
      );
      await fc.assert(
        fc.asyncProperty(bytes, async (value) => {
          await server.command("SET", counterKey(limit), Buffer.from(value), "PX", hourMs);
          const neighbour = resolvedLimit(limit, `n${Math.random()}`);
          const [answer, next] = await Promise.all([ask(limit, beside), store.take([neighbour])]);
          const { remaining, retryAfterMs, resetAfterMs } = answer.outcomes[0]!;
          expect(Number.isInteger(remaining) && remaining >= 0 && remaining <= capacity).toBe(true);
          expect(retryAfterMs >= 0 && resetAfterMs >= 0).toBe(true);
          expect(next.taken).toBe(true);
          await store.charge([resolvedLimit(limit, "u1")]);
          expect(await server.command("PTTL", counterKey(limit))).toBeGreaterThan(0);
        }),
        { numRuns: 150, examples: [[logOutOfOrder]] },
      );
    });
  });

  it("does not keep a subject out in the place of a block", async () => {
    const limit = compileTestLimit({ algorithm: "gcra", windows: [testWindow(5, hourMs)], blockForMs: 60_000 });
    const take = resolvedLimit(limit, "u1");
    const numbers = ["9".repeat(16), "9".repeat(40), "1:1", ":", "5:", ":5", "9e15:5", "1:1:1"];
    const lengths = ["0", "-1", "1e9", "9".repeat(12), "9".repeat(40)].map((length) => `8000000000000000:${length}`);
    for (const value of ["hello", "", "nan", "inf", "-1", "9e99", "1e300", "0x10", ...numbers, ...lengths]) {
      await server.command("SET", blockKey(names, limit, "u1"), value, "PX", hourMs);
      const { outcomes } = await store.take([take]);
      expect([value, outcomes[0]!.fits]).toEqual([value, "now"]);
      await store.block([take], 60_000);
      expect([value, (await store.take([take])).outcomes[0]!.retryAfterMs]).toEqual([value, 60_000]);
      await store.reset([take]);
    }
    await server.command("RPUSH", blockKey(names, limit, "u1"), "a");
    expect((await store.take([take])).taken).toBe(true);
    const before = store.stats.foreign;
    await store.block([take], 60_000);
    expect(store.stats.foreign).toBe(before + 1);
    expect((await store.take([take])).outcomes[0]!.fits).toBe("blocked");
  });

  it("is nothing that could be given back", async () => {
    for (const { limit } of kinds) {
      for (const [name, plant] of garbage) {
        await server.command("FLUSHALL");
        await plant(server, counterKey(limit));
        const held = await server.command("DUMP", counterKey(limit));
        await store.charge([resolvedLimit(limit, "u1", -3)]);
        expect([name, await server.command("DUMP", counterKey(limit))]).toEqual([name, held]);
        expect(await server.command("DBSIZE")).toBe(1);
      }
    }
  });

  it("is void in the place of a receipt, its mark or an id", async () => {
    const limit = createLimit("gcra", hourMs);
    const take = resolvedLimit(limit, "u1");
    for (const plant of garbage.map(([, one]) => one)) {
      await server.command("FLUSHALL");
      const { receipt } = await store.take([take], { receipt: true });
      const key = names.receipt(receipt!.split(".")[2]!);
      expect(await server.command("EXISTS", key)).toBe(1);
      await server.command("DEL", key);
      await plant(server, key);
      expect(await store.give(receipt!)).toBe(false);

      const second = await store.take([take], { receipt: true });
      const mark = names.mark(findCode(limit.windows[0]!).code, "u1");
      await server.command("DEL", mark);
      await plant(server, mark);
      expect(await store.give(second.receipt!)).toBe(false);
      expect((await store.take([take], { receipt: true })).taken).toBe(true);

      await plant(server, names.requestId("order"));
      const answer = await store.take([take], { id: "order", fingerprint: "f" });
      expect([answer.taken, answer.replayed]).toEqual([true, false]);
      expect((await store.take([take], { id: "order", fingerprint: "f" })).replayed).toBe(true);
    }
  });
});
