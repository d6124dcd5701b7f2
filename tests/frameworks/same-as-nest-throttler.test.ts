import * as theirs from "@nestjs/throttler";
import { SluiceThrottlerStorage } from "@sluice/middleware/nest-throttler";
import * as fc from "fast-check";
import { ManualClock, MemoryCounters } from "sluice";
import { afterEach, describe, expect, it, vi } from "vitest";

const ttl = 10_000;

afterEach(() => {
  vi.useRealTimers();
});

/** A storage of theirs and one of ours, whose clocks go together. Theirs keeps a log of hits, so ours does too. */
class Pair {
  readonly clock = new ManualClock();
  readonly their = new theirs.ThrottlerStorageService();
  readonly our = new SluiceThrottlerStorage({
    counters: new MemoryCounters({ clock: this.clock }),
    algorithm: "sliding_log",
  });

  constructor() {
    vi.useFakeTimers({ toFake: ["Date"], now: this.clock.epochMs() });
  }

  advance(ms: number): void {
    this.clock.advance(ms);
    vi.setSystemTime(Date.now() + ms);
  }
}

/** Of an allowance its hits, of a refusal its wait. The others mean nothing: theirs says 0 hits in the middle of a block. */
async function hit(storage: theirs.ThrottlerStorage, limit: number, blockDuration: number): Promise<unknown> {
  const { totalHits, isBlocked, timeToBlockExpire } = await storage.increment(
    "ada",
    ttl,
    limit,
    blockDuration,
    "default",
  );
  return isBlocked ? { timeToBlockExpire } : { totalHits };
}

describe("@nestjs/throttler: their storage and ours in the same conversation", () => {
  it("answers alike, with blocks shorter and longer than the ttl, and without any", async () => {
    const options = fc.record({
      limit: fc.integer({ min: 1, max: 5 }),
      blockDuration: fc.constantFrom(0, 1, 999, 3000, ttl - 1, ttl, 25_000),
    });
    const waits = fc.array(fc.oneof(fc.constant(0), fc.integer({ min: 1, max: 12_000 })), { maxLength: 40 });
    await fc.assert(
      fc.asyncProperty(options, waits, async ({ limit, blockDuration }, waitsMs) => {
        const pair = new Pair();
        for (const waitMs of waitsMs) {
          pair.advance(waitMs);
          const expected = await hit(pair.their, limit, blockDuration);
          expect(await hit(pair.our, limit, blockDuration)).toEqual(expected);
        }
        pair.their.onApplicationShutdown();
      }),
      { numRuns: 200 },
    );
  });
});
