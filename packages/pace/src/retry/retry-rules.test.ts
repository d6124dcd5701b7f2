import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  decideWaitMs,
  findRequestedWaitMs,
  isRefusal,
  isRepeatable,
  isReplayableBody,
  parseRetryOptions,
} from "./retry-rules.ts";

describe("a request may be repeated", () => {
  it.each(["GET", "head", "OPTIONS", "TRACE", "put", "DELETE"])("by its method: %s", (method) => {
    expect(isRepeatable({ method, idempotencyKey: false })).toBe(true);
    expect(isRepeatable({ method, idempotencyKey: false, repeatable: false })).toBe(false);
  });

  it.each(["POST", "PATCH", "CONNECT", "QUERY", "MKCOL"])(
    "not by its method: %s, but by a key, or because its caller allows it",
    (method) => {
      expect(isRepeatable({ method, idempotencyKey: false })).toBe(false);
      expect(isRepeatable({ method, idempotencyKey: true })).toBe(true);
      expect(isRepeatable({ method, idempotencyKey: false, repeatable: true })).toBe(true);
      expect(isRepeatable({ method, idempotencyKey: true, repeatable: false })).toBe(false);
    },
  );
});

describe("a body can be sent again", () => {
  it.each([
    null,
    undefined,
    "",
    "text",
    new Uint8Array(1),
    Buffer.from("x"),
    new ArrayBuffer(1),
    new URLSearchParams("a=1"),
    new Blob(["x"]),
    new FormData(),
  ])("that is there as a whole: %s", (body) => expect(isReplayableBody(body)).toBe(true));

  it.each([new ReadableStream(), (function* () {})(), (async function* () {})(), {}, []])(
    "but not one that is read once: %s",
    (body) => {
      expect(isReplayableBody(body)).toBe(false);
    },
  );
});

describe("an answer refuses for now", () => {
  const nothing = { limits: [] };
  const withWait = { limits: [], retryAfterMs: 5 };
  const exhausted = { limits: [{ remaining: 0, resetAfterMs: 7000 }] };

  it.each([
    [429, nothing, true],
    [503, nothing, false],
    [503, exhausted, false],
    [503, withWait, true],
    [403, nothing, false],
    [403, withWait, true],
    [403, exhausted, true],
    [500, withWait, false],
    [200, withWait, false],
    [301, withWait, false],
  ])("by its status and the limits it reports: %s %j: %s", (status, reading, refused) => {
    expect(isRefusal(status, reading, [403, 429, 503])).toBe(refused);
  });

  it("for as long as Retry-After says, else until the exhausted limit resets", () => {
    expect(findRequestedWaitMs({ limits: [{ remaining: 0, resetAfterMs: 1 }], retryAfterMs: 5 })).toBe(5);
    expect(
      findRequestedWaitMs({
        limits: [
          { remaining: 0, resetAfterMs: 5 },
          { remaining: 0, resetAfterMs: 9 },
          { remaining: 1, resetAfterMs: 99 },
        ],
      }),
    ).toBe(9);
    expect(findRequestedWaitMs({ limits: [{ remaining: 0 }, { remaining: 3, resetAfterMs: 9 }] })).toBeUndefined();
  });
});

describe("the wait for another attempt", () => {
  const rules = (random: number) => parseRetryOptions({ random: () => random, maxAttempts: 4, maxWaitMs: 60_000 });

  it("is the requested wait and jitter, which doubles", () => {
    expect([1, 2, 3].map((attempt) => decideWaitMs(attempt, 2000, rules(0)))).toEqual([2000, 2000, 2000]);
    expect([1, 2, 3].map((attempt) => decideWaitMs(attempt, 2000, rules(1)))).toEqual([2500, 3000, 4000]);
    expect([1, 2, 3].map((attempt) => decideWaitMs(attempt, undefined, rules(0.5)))).toEqual([250, 500, 1000]);
  });

  it("is none after the last attempt, or if it is too long", () => {
    expect(decideWaitMs(4, 0, rules(0))).toBeUndefined();
    expect(decideWaitMs(1, 60_000, rules(1))).toBe(60_000);
    expect(decideWaitMs(1, 60_001, rules(0))).toBeUndefined();
  });

  it("is never shorter than requested, nor longer than allowed, whatever the source of randomness", () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 50 }),
        fc.option(fc.nat(200_000), { nil: undefined }),
        fc.double(),
        fc.nat(100_000),
        (attempt, requestedMs, random, maxWaitMs) => {
          const waitMs = decideWaitMs(attempt, requestedMs, { random: () => random, maxAttempts: 100, maxWaitMs });
          if ((requestedMs ?? 0) > maxWaitMs) expect(waitMs).toBeUndefined();
          else {
            expect(waitMs).toBeGreaterThanOrEqual(requestedMs ?? 0);
            expect(waitMs).toBeLessThanOrEqual(Math.min(maxWaitMs, (requestedMs ?? 0) + 10_000));
          }
        },
      ),
    );
  });

  it("has options that are checked", () => {
    expect(() => parseRetryOptions({ maxAttempts: 0 })).toThrow(/maxAttempts/);
    expect(() => parseRetryOptions({ maxWaitMs: Number.NaN })).toThrow(/maxWaitMs/);
  });
});
