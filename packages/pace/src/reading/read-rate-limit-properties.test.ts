import fc from "fast-check";
import { createLimiter, ManualClock, renderHeaders } from "sluice";
import { type HeaderGeneration, headerGenerations } from "sluice/internal";
import { describe, expect, it } from "vitest";
import { readRateLimit } from "./read-rate-limit.ts";

const conversation = fc.record({
  limit: fc.integer({ min: 1, max: 5000 }),
  per: fc.constantFrom("1s", "90s", "1m", "1h", "1d"),
  burst: fc.integer({ min: 1, max: 500 }),
  second: fc.boolean(),
  costs: fc.array(fc.integer({ min: 1, max: 300 }), { minLength: 1, maxLength: 8 }),
  stepMs: fc.integer({ min: 0, max: 5000 }),
});

describe("headers that Sluice writes", () => {
  it.each(headerGenerations)("are read back unchanged, in %s", (generation: HeaderGeneration) => {
    fc.assert(
      fc.property(conversation, ({ limit, per, burst, second, costs, stepMs }) => {
        const clock = new ManualClock(1_750_000_000_123);
        const windows = [`${limit}/${per} burst ${burst}`];
        const limits = [
          { by: ["user"], windows },
          ...(second ? [{ name: "second", by: ["user"], windows: ["7/m"] }] : []),
        ];
        const limiter = createLimiter({ clock, policies: { policies: [{ id: "api", limits, on_failure: "open" }] } });
        for (const cost of costs) {
          const decision = limiter.checkSync({ dimensions: { user: "u" }, cost, details: true });
          const nowMs = clock.epochMs();
          const reading = readRateLimit(renderHeaders(decision, { generations: [generation] }), { nowMs });
          const speaking = reading.limits.find(({ remaining }) => remaining !== undefined);

          expect(speaking?.limit).toBe(decision.limit);
          expect(speaking?.remaining).toBe(
            Math.floor((generation === "draft11" ? decision.limitRemaining : decision.remaining) ?? 0),
          );
          if (decision.retryAfterMs === undefined) expect(reading.retryAfterMs).toBeUndefined();
          else expect(reading.retryAfterMs).toBe(Math.max(1, Math.ceil(decision.retryAfterMs / 1000)) * 1000);
          // Seconds are whole, and rounded up: at most one later than it is.
          const untilMs =
            generation === "legacy" || decision.retryAfterMs === undefined
              ? generation === "draft11"
                ? decision.moreAfterMs
                : decision.resetAfterMs
              : decision.retryAfterMs;
          if (untilMs === undefined) expect(speaking?.resetAfterMs).toBeUndefined();
          else {
            expect(speaking?.resetAfterMs).toBeGreaterThanOrEqual(Math.floor(untilMs));
            expect(speaking?.resetAfterMs).toBeLessThanOrEqual(untilMs + (decision.retryAfterMs ?? 0) + 1000);
          }
          if (generation === "draft11") {
            expect(speaking?.name).toBe(`${decision.policy}/${decision.scope}`);
            expect(reading.limits).toHaveLength(second ? 2 : 1);
            expect(reading.limits.every(({ windowMs }) => windowMs !== undefined)).toBe(true);
          }
          clock.advance(stepMs);
        }
      }),
    );
  });
});

describe("arbitrary headers", () => {
  const names = fc.constantFrom(
    "RateLimit",
    "RateLimit-Policy",
    "RateLimit-Limit",
    "RateLimit-Reset",
    "X-RateLimit-Remaining",
    "X-RateLimit-Reset",
    "x-ratelimit-reset-tokens",
    "x-rate-limit-limit-limit",
    "Retry-After",
    "Retry-After-Ms",
    "Date",
  );
  const pieces = fc.array(
    fc.constantFrom(
      '"',
      "\\",
      ";",
      "=",
      ",",
      " ",
      "\t",
      "(",
      ")",
      "r",
      "t",
      "q",
      "w",
      "1",
      "9".repeat(15),
      "-",
      ".",
      ":",
      "?",
      "@",
      "%",
      "GMT",
      "ms",
      "\u0000",
      "ü",
    ),
    {
      maxLength: 40,
    },
  );
  const values = fc.oneof(
    fc.string(),
    pieces.map((parts) => parts.join("")),
    fc.string({ maxLength: 5000, minLength: 4000 }),
  );

  it("never make it throw, and yield valid numbers", () => {
    fc.assert(
      fc.property(
        fc.array(fc.tuple(fc.oneof(names, fc.string()), values), { maxLength: 12 }),
        fc.nat(4e12),
        (fields, nowMs) => {
          const { limits, retryAfterMs } = readRateLimit(fields.flat(), { nowMs });
          const numbers = limits.flatMap(({ limit, remaining, resetAfterMs, windowMs }) => [
            limit,
            remaining,
            resetAfterMs,
            windowMs,
          ]);
          for (const number of [retryAfterMs, ...numbers]) {
            if (number === undefined) continue;
            expect(Number.isSafeInteger(number) && number >= 0).toBe(true);
          }
          expect(limits.length).toBeLessThanOrEqual(64);
        },
      ),
      { numRuns: 2000 },
    );
  });
});
