import { CheckBatchResponse } from "@sluice/protocol";
import fc from "fast-check";
import type { Decision, LimitDecision, Window } from "sluice";
import type { ShadowDenial } from "sluice/internal";
import { describe, expect, it } from "vitest";
import type { DescribedError } from "../../service/describe-error.ts";
import { batchCodec } from "./batch-codec.ts";
import { decisionMessage } from "./decision-message.ts";

const amount = fc.oneof(fc.nat(1_000_000), fc.double({ min: 0, max: 1e9, noNaN: true }));
const ms = fc.oneof(
  fc.nat(100_000),
  fc.double({ min: 0, max: 1e6, noNaN: true }),
  fc.integer({ min: 2 ** 31, max: 2 ** 33 }),
  fc.integer({ min: 0, max: Number.MAX_SAFE_INTEGER }),
  fc.constantFrom(0, 2 ** 32 - 1, 2 ** 32, Number.POSITIVE_INFINITY),
);
const name = fc.string({ minLength: 1, maxLength: 20, unit: "grapheme" });
const reason = fc.constantFrom(
  ...(["within_limits", "over_limit", "never_fits", "blocked", "deny_list", "missing_dimension"] as const),
);
const optional = <T>(value: fc.Arbitrary<T>): fc.Arbitrary<T | undefined> => fc.option(value, { nil: undefined });

const window: fc.Arbitrary<Window> = fc.record({
  limit: amount,
  per: fc.oneof(
    fc.record({ kind: fc.constant("ms" as const), ms: fc.integer({ min: 1, max: 1e12 }) }),
    fc.record({
      kind: fc.constant("calendar" as const),
      unit: fc.constantFrom("day" as const, "month" as const),
      timeZone: fc.constant("UTC"),
    }),
    fc.constant({ kind: "never" as const }),
  ),
  burst: amount,
});

const queue = fc.record({ position: amount, delayMs: amount });

const limit: fc.Arbitrary<LimitDecision> = fc.record({
  policy: name,
  version: fc.nat(),
  scope: name,
  subject: name,
  algorithm: fc.constant("gcra" as const),
  allowed: fc.boolean(),
  reason,
  window,
  cost: fc.nat(100_000),
  limit: amount,
  remaining: amount,
  used: amount,
  retryAfterMs: optional(ms),
  resetAfterMs: ms,
  queue: optional(queue),
  shadow: fc.boolean(),
});

const shadow: fc.Arbitrary<ShadowDenial> = fc.record({
  policy: name,
  version: fc.nat(),
  scope: optional(name),
  reason,
  retryAfterMs: optional(ms),
});

/** Few windows, so that what is kept for one is met again, under other policies as well. */
const windows = fc.sample(window, { numRuns: 4, seed: 7 });

const decision: fc.Arbitrary<Decision> = fc.record({
  allowed: fc.boolean(),
  reason,
  cost: fc.nat(100_000),
  policy: optional(fc.constantFrom("a", "b")),
  version: optional(fc.constantFrom(1, 2 ** 40)),
  scope: optional(fc.constantFrom("user", "tenant")),
  window: optional(fc.constantFrom(...windows)),
  limit: optional(fc.constantFrom(3, 4.5)),
  remaining: optional(amount),
  limitRemaining: optional(amount),
  used: optional(amount),
  retryAfterMs: optional(ms),
  resetAfterMs: optional(ms),
  resetAtMs: optional(ms),
  moreAfterMs: optional(ms),
  queue: fc.option(queue, { nil: undefined, freq: 1 }),
  state: fc.constantFrom("normal", "warning", "throttled"),
  denyCount: fc.constantFrom(0, 0, 5, 2 ** 40),
  replayed: fc.boolean(),
  preview: fc.boolean(),
  degraded: optional(fc.constant("storage_timeout" as const)),
  shadow: fc.array(shadow, { maxLength: 1 }),
  limits: optional(fc.array(limit, { maxLength: 2 })),
  receipt: optional(name),
});

/** The same with nothing out of the ordinary, which goes the short way. */
const plain = decision.map((one): Decision => {
  const [w] = windows;
  const nothing = { queue: undefined, degraded: undefined, shadow: [], limits: undefined, receipt: undefined };
  return { ...one, ...nothing, denyCount: 0, preview: false, remaining: 1, used: 2, window: one.window ?? w };
});

const refusal: fc.Arbitrary<DescribedError> = fc.record({
  code: fc.constant("invalid_request" as const),
  message: name,
  fields: fc.array(fc.record({ field: name, message: name }), { maxLength: 2 }),
  more: fc.nat(3),
});

describe("the codec of batches", () => {
  it("writes what the generated one writes", () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 0, max: 2 ** 32 - 1 }),
        fc.array(fc.oneof(plain, decision, refusal), { maxLength: 8 }),
        (sequence, results) => {
          const messages = results.map((one) =>
            "code" in one ? { decision: undefined, error: one } : { decision: decisionMessage(one), error: undefined },
          );
          const wanted = CheckBatchResponse.encode({ sequence, results: messages });
          const reference = CheckBatchResponse.decode(wanted.finish());
          const made = batchCodec.encode({ sequence, results }, wanted).finish();
          expect(CheckBatchResponse.decode(made)).toEqual(reference);
        },
      ),
      { numRuns: 2_000 },
    );
  });
});
