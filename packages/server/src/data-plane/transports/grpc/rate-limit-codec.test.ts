import { BinaryWriter } from "@bufbuild/protobuf/wire";
import { RateLimitRequest, RateLimitResponse } from "@sluice/protocol/envoy";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { InPlaceWriter } from "./in-place-writer.ts";
import { readRateLimitRequest } from "./read-rate-limit-request.ts";
import { writeRateLimitResponse } from "./write-rate-limit-response.ts";

const text = fc.oneof(
  fc.string({ maxLength: 40 }),
  fc.string({ unit: "grapheme", maxLength: 20 }),
  fc.constantFrom("", "remote_address", "path", "u".repeat(200)),
);
const uint32 = fc.oneof(fc.nat(200), fc.integer({ min: 0, max: 2 ** 32 - 1 }));
const absent = { nil: undefined, freq: 3 };

const descriptor = fc.record({
  entries: fc.array(fc.record({ key: text, value: text }), { maxLength: 4 }),
  limit: fc.option(
    fc.record({ requestsPerUnit: uint32, unit: fc.constantFrom(0 as const, 1 as const, 2 as const) }),
    absent,
  ),
  hitsAddend: fc.option(uint32, absent),
  isNegativeHits: fc.boolean(),
});
/** As Envoy sends nearly all of them. */
const usualDescriptor = fc.record({
  entries: fc.array(fc.record({ key: text, value: text }), { maxLength: 4 }),
  limit: fc.constant(undefined),
  hitsAddend: fc.constant(undefined),
  isNegativeHits: fc.constant(false),
});
const requests: fc.Arbitrary<RateLimitRequest> = fc.record({
  domain: text,
  descriptors: fc.oneof(fc.array(usualDescriptor, { maxLength: 4 }), fc.array(descriptor, { maxLength: 4 })),
  hitsAddend: uint32,
});

const header = fc.record({ key: text, value: text, rawValue: fc.uint8Array({ maxLength: 3 }) });
const status = fc.record({
  code: fc.constantFrom(0 as const, 1 as const, 2 as const),
  currentLimit: fc.option(
    fc.record({ requestsPerUnit: uint32, unit: fc.constantFrom(0 as const, 1 as const, 7 as const), name: text }),
    { nil: undefined },
  ),
  limitRemaining: uint32,
  durationUntilReset: fc.option(fc.record({ seconds: fc.nat(2 ** 31), nanos: fc.nat(999_999_999) }), {
    nil: undefined,
  }),
  quota: fc.option(fc.record({ requests: uint32, id: text, validUntil: fc.constant(undefined) }), {
    ...absent,
    freq: 9,
  }),
});
const responses: fc.Arbitrary<RateLimitResponse> = fc.record({
  overallCode: fc.constantFrom(0 as const, 1 as const, 2 as const),
  statuses: fc.array(status, { maxLength: 5 }),
  responseHeadersToAdd: fc.oneof(fc.array(header, { maxLength: 0 }), fc.array(header, { maxLength: 3 })),
  requestHeadersToAdd: fc.array(header, { maxLength: 0 }),
  rawBody: fc.oneof({ weight: 9, arbitrary: fc.constant(new Uint8Array()) }, { weight: 1, arbitrary: fc.uint8Array() }),
  dynamicMetadata: fc.constant(undefined),
  quota: fc.constant(undefined),
});

/** What reads bytes, or undefined where they cannot be read. */
function attempt(read: (bytes: Uint8Array) => RateLimitRequest, bytes: Uint8Array): RateLimitRequest | undefined {
  try {
    return read(bytes);
  } catch {
    return undefined;
  }
}

describe("Envoy's question", () => {
  it("is read as the generated codec reads it", () => {
    fc.assert(
      fc.property(requests, (request) => {
        const bytes = RateLimitRequest.encode(request).finish();
        expect(readRateLimitRequest(bytes)).toEqual(RateLimitRequest.decode(bytes));
      }),
      { numRuns: 2_000 },
    );
  });

  it("is read the same if its bytes were changed, unless it is refused: fields that do not fit into their message are", () => {
    const change = fc.record({ at: fc.nat(), byte: fc.integer({ min: 0, max: 255 }) });
    let read = 0;
    fc.assert(
      fc.property(requests, fc.array(change, { minLength: 1, maxLength: 3 }), (request, changes) => {
        const bytes = RateLimitRequest.encode(request).finish();
        for (const { at, byte } of changes) bytes[at % Math.max(1, bytes.length)] = byte;
        const mine = attempt(readRateLimitRequest, bytes);
        if (mine === undefined) return;
        read += 1;
        expect(mine).toEqual(attempt(RateLimitRequest.decode, bytes));
      }),
      { numRuns: 5_000 },
    );
    expect(read).toBeGreaterThan(1_000);
  });
});

describe("the answer to Envoy", () => {
  it("has the bytes of the generated codec", () => {
    fc.assert(
      fc.property(responses, (response) => {
        const expected = Buffer.from(RateLimitResponse.encode(response).finish());
        const usual = new BinaryWriter();
        writeRateLimitResponse(response, usual);
        expect(Buffer.from(usual.finish())).toEqual(expected);
        const inPlace = new InPlaceWriter();
        const bytes = Buffer.alloc(4_096);
        inPlace.begin(bytes, 3, bytes.length);
        writeRateLimitResponse(response, inPlace);
        expect(bytes.subarray(3, inPlace.at)).toEqual(expected);
      }),
      { numRuns: 2_000 },
    );
  });
});
