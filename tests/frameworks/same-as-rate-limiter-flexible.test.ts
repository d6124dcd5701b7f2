import {
  RateLimiterMemory,
  type RateLimiterOptions,
  RateLimiterRedis,
  RateLimiterRes,
} from "@sluice/middleware/rate-limiter-flexible";
import { RedisCounters } from "@sluice/redis";
import { startServer, type TestServer } from "@sluice/test-servers";
import * as fc from "fast-check";
import { Redis } from "ioredis";
import * as theirs from "rate-limiter-flexible";
import { ManualClock, MemoryCounters } from "sluice";
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from "vitest";

/** What both have, theirs and ours. */
type Limiter = Pick<theirs.RateLimiterAbstract, "consume" | "penalty" | "reward" | "get" | "set" | "block" | "delete">;

const key = "ada";
const durationSec = 10;
/** So long that no test sees a window end, in seconds. */
const long = 20 * 24 * 60 * 60;

const closing: (() => unknown)[] = [];
afterEach(async () => {
  vi.useRealTimers();
  for (const close of closing.splice(0).reverse()) await close();
});

/** One limiter of theirs and one of ours, whose clocks go together from the beginning of a window. */
class Pair {
  readonly clock = new ManualClock();
  readonly their: theirs.RateLimiterMemory;
  readonly our: RateLimiterMemory;

  constructor(options: RateLimiterOptions) {
    vi.useFakeTimers({ toFake: ["Date", "setTimeout", "clearTimeout"], now: this.clock.epochMs() });
    const { points, duration, blockDuration = 0 } = options;
    this.their = new theirs.RateLimiterMemory({ points, duration, blockDuration });
    this.our = new RateLimiterMemory({ ...options, counters: new MemoryCounters({ clock: this.clock }) });
  }

  advance(ms: number): void {
    this.clock.advance(ms);
    vi.advanceTimersByTime(ms);
  }

  /** Ours count in windows that begin at multiples of their length, which is the difference that is left. */
  toNextWindow(): void {
    const windowMs = durationSec * 1000;
    this.advance((windowMs - (this.clock.epochMs() % windowMs)) % windowMs);
  }
}

type Step =
  | readonly ["consume" | "penalty" | "reward" | "set" | "block", number]
  | readonly ["get" | "delete"]
  | readonly ["wait", number];

/** The answer as plain data. The consume that begins a block is the first of a new record in their memory, and of none in their Redis. */
function plain(answer: unknown, way: "resolved" | "rejected"): unknown {
  if (typeof answer !== "object" || answer === null) return { [way]: answer };
  if (answer instanceof Error) throw answer;
  const { remainingPoints, msBeforeNext, consumedPoints, isFirstInDuration } = answer as theirs.RateLimiterRes;
  const isFirst = way === "resolved" && isFirstInDuration;
  return { [way]: { remainingPoints, msBeforeNext, consumedPoints, isFirst } };
}

function ask(limiter: Limiter, step: Step): Promise<unknown> {
  const call = (): Promise<unknown> => {
    switch (step[0]) {
      case "consume":
      case "penalty":
      case "reward":
        return limiter[step[0]](key, step[1]);
      case "block":
        return limiter.block(key, step[1]);
      case "set":
        return limiter.set(key, step[1], durationSec);
      case "get":
      case "delete":
        return limiter[step[0]](key);
      case "wait":
        return Promise.resolve();
    }
  };
  return call().then(
    (answer) => plain(answer, "resolved"),
    (answer: unknown) => plain(answer, "rejected"),
  );
}

const amount = fc.integer({ min: 1, max: 4 });
const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 6, arbitrary: fc.tuple(fc.constant("consume" as const), amount) },
  { weight: 1, arbitrary: fc.tuple(fc.constant("consume" as const), fc.constant(0)) },
  { weight: 1, arbitrary: fc.tuple(fc.constant("penalty" as const), amount) },
  { weight: 1, arbitrary: fc.tuple(fc.constant("reward" as const), amount) },
  { weight: 1, arbitrary: fc.tuple(fc.constant("set" as const), amount) },
  { weight: 1, arbitrary: fc.tuple(fc.constant("block" as const), fc.integer({ min: 1, max: 30 })) },
  { weight: 2, arbitrary: fc.constant(["get"] as const) },
  { weight: 1, arbitrary: fc.constant(["delete"] as const) },
  { weight: 3, arbitrary: fc.tuple(fc.constant("wait" as const), fc.integer({ min: 1, max: 12_000 })) },
);

describe("rate-limiter-flexible: theirs and ours in the same conversation", () => {
  it("answers alike, whatever is consumed, refused, penalized, set, blocked and deleted, and whenever", async () => {
    const options = fc.record({
      points: fc.integer({ min: 1, max: 6 }),
      blockDuration: fc.constantFrom(0, 0, 3, 10, 25),
    });
    await fc.assert(
      fc.asyncProperty(options, fc.array(step, { maxLength: 40 }), async ({ points, blockDuration }, steps) => {
        const pair = new Pair({ points, blockDuration, duration: durationSec });
        let mayBeBlocked = false;
        for (const one of steps) {
          if (one[0] === "wait") pair.advance(one[1]);
          const before = await pair.their.get(key);
          if (before === null || one[0] === "set") pair.toNextWindow();
          if (before === null) mayBeBlocked = false;
          // Theirs gives more than there was, and ends a block that way: see what ours differ in.
          if (one[0] === "reward" && (mayBeBlocked || (before?.consumedPoints ?? 0) <= one[1])) continue;
          if (one[0] === "consume" && one[1] === 0 && before === null) continue;
          mayBeBlocked ||= blockDuration > 0 || one[0] === "block";
          const expected = await ask(pair.their, one);
          expect(await ask(pair.our, one), `${one.join(" ")} of ${points}`).toEqual(expected);
        }
      }),
      { numRuns: 150 },
    );
  });

  it("a login guard checks as many passwords as with theirs", async () => {
    const guarded = async (limiter: Limiter, points: number): Promise<number> => {
      let checked = 0;
      for (let i = 0; i < 100; i++) {
        const known = await limiter.get(key);
        if (known !== null && known.consumedPoints > points) continue;
        checked += 1;
        await limiter.consume(key).catch(() => {});
      }
      return checked;
    };
    for (const blockDuration of [0, 3, 60]) {
      const { their, our } = new Pair({ points: 5, duration: 60, blockDuration });
      expect(await guarded(their, 5)).toBe(6);
      expect(await guarded(our, 5)).toBe(6);
    }
  });

  it("begins blockDuration with the first consume above points, and starts fresh when it ends", async () => {
    const pair = new Pair({ points: 2, duration: durationSec, blockDuration: 5 });
    const { our } = pair;
    pair.toNextWindow();
    await our.consume(key, 2);
    await our.penalty(key, 3);
    await expect(our.consume(key)).rejects.toMatchObject({ consumedPoints: 6, msBeforeNext: 10_000 });
    await our.delete(key);
    await our.consume(key, 2);
    await expect(our.consume(key, 3)).rejects.toMatchObject({ consumedPoints: 5, msBeforeNext: 5000 });
    pair.advance(4999);
    await expect(our.consume(key)).rejects.toMatchObject({ consumedPoints: 6, msBeforeNext: 1 });
    pair.advance(1);
    expect(await our.consume(key)).toMatchObject({ consumedPoints: 1, isFirstInDuration: true });
  });

  it("keeps refused keys in full memory, as it keeps any that its limit refuses", async () => {
    const counters = new MemoryCounters({ clock: new ManualClock(), maxCounters: 50 });
    const limiter = new RateLimiterMemory({ points: 2, duration: 60, counters });
    for (let i = 0; i < 5; i++) await limiter.consume("refused").catch(() => {});
    for (let i = 0; i < 500; i++) await limiter.consume(`other ${i}`);
    expect(await limiter.get("refused")).toMatchObject({ consumedPoints: 5 });
  });
});

describe("rate-limiter-flexible: theirs and ours on a real server", () => {
  let server: TestServer;
  beforeAll(async () => {
    server = await startServer({ flavor: "valkey" });
  });
  afterAll(() => server.close());

  async function counters(): Promise<RedisCounters> {
    const one = new RedisCounters({ servers: server.url, deadlineMs: 5000 });
    closing.push(() => one.close());
    await one.connected();
    return one;
  }

  it("answers alike there too, whatever is consumed, refused, blocked in memory and on the server", async () => {
    const storeClient = new Redis(server.url);
    closing.push(() => storeClient.disconnect());
    const shared = await counters();
    const options = fc
      .record({
        points: fc.integer({ min: 1, max: 6 }),
        blockDuration: fc.constantFrom(0, long / 2),
        blockOnConsumed: fc.constantFrom(0, 7, 9),
        inMemoryBlockOnConsumed: fc.constantFrom(0, 0, 6, 8),
        inMemoryBlockDuration: fc.constantFrom(0, long / 4),
      })
      .map((one) => ({
        ...one,
        inMemoryBlockDuration: one.inMemoryBlockOnConsumed > 0 ? one.inMemoryBlockDuration : 0,
      }));
    // Times are the server's, and none of them passes.
    const timeless = step.filter(([name]) => name !== "wait" && name !== "reward" && name !== "set");
    let run = 0;
    await fc.assert(
      fc.asyncProperty(options, fc.array(timeless, { maxLength: 20 }), async (given, steps) => {
        const common = { ...given, duration: long, keyPrefix: `run ${run++}` };
        const their = new theirs.RateLimiterRedis({ ...common, storeClient });
        const our = new RateLimiterRedis({ ...common, counters: shared });
        for (const one of steps) {
          if (one[0] === "consume" && one[1] === 0) continue;
          const expected = timed(await ask(their, one));
          expect(timed(await ask(our, one)), `${one.join(" ")} by ${JSON.stringify(given)}`).toEqual(expected);
        }
      }),
      { numRuns: 30 },
    );
  });

  it("lets exactly points pass of a crowd, blocks it once, and counts refused points", async () => {
    const shared = await counters();
    for (const blockDuration of [0, 1000]) {
      const options = {
        counters: shared,
        points: 5,
        duration: long,
        blockDuration,
        keyPrefix: `crowd ${blockDuration}`,
      };
      const limiters = [new RateLimiterRedis(options), new RateLimiterRedis(options)];
      const asked = Array.from({ length: 60 }, (_, i) => limiters[i % 2]!.consume(key));
      const answers = await Promise.allSettled(asked);
      expect(answers.filter(({ status }) => status === "fulfilled")).toHaveLength(5);
      for (const one of answers) {
        if (one.status === "rejected") expect(one.reason).toBeInstanceOf(RateLimiterRes);
      }
      const { consumedPoints, msBeforeNext } = (await limiters[0]!.get(key))!;
      if (blockDuration === 0) expect(consumedPoints).toBe(60);
      else expect(consumedPoints).toBeGreaterThan(5);
      if (blockDuration > 0) expect(msBeforeNext).toBeLessThanOrEqual(1_000_000);
      await expect(limiters[1]!.consume(key)).rejects.toMatchObject({ consumedPoints: consumedPoints + 1 });
    }
  });

  it("a login guard over a client checks six passwords where points are five", async () => {
    const storeClient = new Redis(server.url);
    closing.push(() => storeClient.disconnect());
    const limiter = new RateLimiterRedis({
      storeClient,
      points: 5,
      duration: long,
      keyPrefix: "login",
    });
    let checked = 0;
    for (let i = 0; i < 20; i++) {
      const known = await limiter.get(key);
      if (known !== null && known.consumedPoints > 5) continue;
      checked += 1;
      await limiter.consume(key).catch(() => {});
    }
    expect(checked).toBe(6);
  });
});

/** Which block speaks, by how long it lasts. Windows are left out: theirs begin with the first hit, ours at a multiple. */
function timed(answer: unknown): unknown {
  const [way, res] = Object.entries(answer as Record<string, unknown>)[0]!;
  if (typeof res !== "object" || res === null) return answer;
  const { msBeforeNext, isFirst: _, ...rest } = res as { msBeforeNext: number; isFirst: boolean };
  const blocked = [long / 2, long / 4].find((sec) => Math.abs(msBeforeNext - sec * 1000) < 60_000);
  return { [way]: { ...rest, blocked: way === "rejected" ? blocked : undefined } };
}
