import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { encodeField, encodeRetryStatus, encodeVarint } from "../testing/encode-retry-status.ts";
import { decodeRetryDelayMs } from "./decode-retry-delay.ts";

describe("the delay of a RetryInfo", () => {
  it.each([
    [0, 0, 0],
    [2, 0, 2000],
    [1, 500_000_000, 1500],
    [0, 1, 1],
    [-1, 0, 0],
    [9e15, 0, 2_147_483_647_000],
  ])("is read: %s s and %s ns", (seconds, nanos, ms) => {
    expect(decodeRetryDelayMs(encodeRetryStatus(seconds, nanos))).toBe(ms);
  });

  it("is found among other details and fields", () => {
    const other = encodeField(
      3,
      Buffer.concat([
        encodeField(1, Buffer.from("type.googleapis.com/google.rpc.QuotaFailure")),
        encodeField(2, Buffer.from("?")),
      ]),
    );
    const fixed = Buffer.concat([
      encodeVarint(9n * 8n + 1n),
      Buffer.alloc(8),
      encodeVarint(10n * 8n + 5n),
      Buffer.alloc(4),
    ]);
    expect(decodeRetryDelayMs(Buffer.concat([other, fixed, encodeRetryStatus(3, 0), other]))).toBe(3000);
  });

  it("is the longest of several", () => {
    expect(decodeRetryDelayMs(Buffer.concat([encodeRetryStatus(3, 0), encodeRetryStatus(1, 0)]))).toBe(3000);
  });

  it.each([
    ["no bytes", Buffer.alloc(0)],
    ["a varint without an end", Buffer.alloc(20, 0xff)],
    ["a length beyond the end", Buffer.from([0x1a, 0x7f, 1])],
    ["a huge length", Buffer.concat([Buffer.from([0x1a]), encodeVarint(2n ** 63n)])],
    ["a group", Buffer.from([0x1b, 0x1c])],
    ["field 0", Buffer.from([0x02, 0x00])],
    ["a RetryInfo without a delay", encodeField(3, encodeField(1, Buffer.from("x/google.rpc.RetryInfo")))],
    ["too much", Buffer.alloc(100_000)],
    ["another type", encodeField(3, encodeField(1, Buffer.from("x/other.google.rpc.RetryInfos")))],
  ])("is none in %s", (_, bytes) => {
    expect(decodeRetryDelayMs(bytes)).toBeUndefined();
  });

  it("never throws, and is a valid wait, whatever the bytes", () => {
    const good = encodeRetryStatus(5, 7);
    const spoilt = fc.tuple(fc.nat(good.length - 1), fc.nat(255), fc.nat(good.length)).map(([at, byte, length]) => {
      const bytes = Buffer.from(good);
      bytes[at] = byte;
      return bytes.subarray(0, length);
    });
    fc.assert(
      fc.property(fc.oneof(fc.uint8Array({ maxLength: 200 }), spoilt), (bytes) => {
        const delayMs = decodeRetryDelayMs(bytes);
        if (delayMs !== undefined) expect(Number.isSafeInteger(delayMs) && delayMs >= 0).toBe(true);
      }),
      { numRuns: 2000 },
    );
  });
});
