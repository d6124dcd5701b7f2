import { CheckBatchRequest, CheckRequest } from "@sluice/protocol";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { readBatch } from "./read-batch.ts";

const text = fc.oneof(
  fc.string({ maxLength: 40 }),
  fc.string({ unit: "grapheme", maxLength: 20 }),
  fc.constantFrom("", "user", "tenant", "endpoint", "ip", "uses", "u".repeat(200)),
);
const uint32 = fc.oneof(fc.nat(200), fc.integer({ min: 0, max: 2 ** 32 - 1 }));

const check = fc
  .record({
    domain: text,
    dimensions: fc.dictionary(
      text.filter((name) => name !== "__proto__"),
      text,
      { maxKeys: 5 },
    ),
    cost: fc.option(fc.integer({ min: -(2 ** 31), max: 2 ** 31 - 1 }), { nil: undefined }),
    id: text,
    idTtlMs: uint32,
    preview: fc.boolean(),
    policies: fc.array(text, { maxLength: 3 }),
    details: fc.boolean(),
    receipt: fc.boolean(),
  })
  .map((fields) => CheckRequest.fromPartial(fields));

const batch = fc.record({ sequence: uint32, checks: fc.array(check, { maxLength: 5 }), deadlineMs: uint32 });

/** What reads bytes, or undefined where they cannot be read. */
function attempt(read: (bytes: Uint8Array) => CheckBatchRequest, bytes: Uint8Array): CheckBatchRequest | undefined {
  try {
    return read(bytes);
  } catch {
    return undefined;
  }
}

describe("reading a batch", () => {
  it("gives what the generated codec gives", () => {
    fc.assert(
      fc.property(batch, (asked) => {
        const bytes = CheckBatchRequest.encode(asked).finish();
        expect(readBatch(bytes)).toEqual(CheckBatchRequest.decode(bytes));
      }),
      { numRuns: 2_000 },
    );
  });

  it("gives the same of bytes that were changed, or says that they cannot be read", () => {
    const change = fc.record({ at: fc.nat(), byte: fc.integer({ min: 0, max: 255 }) });
    let read = 0;
    fc.assert(
      fc.property(batch, fc.array(change, { minLength: 1, maxLength: 3 }), (asked, changes) => {
        const bytes = CheckBatchRequest.encode(asked).finish();
        for (const { at, byte } of changes) bytes[at % Math.max(1, bytes.length)] = byte;
        const mine = attempt(readBatch, bytes);
        if (mine === undefined) return;
        read += 1;
        expect(mine).toEqual(CheckBatchRequest.decode(bytes));
      }),
      { numRuns: 5_000, seed: 4 },
    );
    expect(read).toBeGreaterThan(1_000);
  });

  it("says that a message cannot be read which is cut off inside of a field", () => {
    const bytes = CheckBatchRequest.encode({
      sequence: 300,
      checks: [CheckRequest.fromPartial({ dimensions: { user: "ada" }, cost: -1, id: "i" })],
      deadlineMs: 0,
    }).finish();
    // Behind the first field, and behind the last, there is a message.
    const readable = Array.from({ length: bytes.length + 1 }, (_, length) => length).filter(
      (length) => attempt(readBatch, bytes.subarray(0, length)) !== undefined,
    );
    expect(readable).toEqual([0, 3, bytes.length]);
  });

  it("steps over fields that are not known, of every kind", () => {
    const unknown = [
      0xa0, 0x06, 0x96, 0x01, 0xa1, 0x06, 1, 2, 3, 4, 5, 6, 7, 8, 0xa2, 0x06, 2, 9, 9, 0xa5, 0x06, 1, 2, 3, 4,
    ];
    const known = CheckBatchRequest.encode({ sequence: 7, checks: [], deadlineMs: 9 }).finish();
    expect(readBatch(Uint8Array.from([...unknown, ...known, ...unknown]))).toEqual({
      sequence: 7,
      checks: [],
      deadlineMs: 9,
    });
  });

  it("refuses numbers without an end, fields without a number, and groups", () => {
    for (const bytes of [[0x08, ...new Array(11).fill(0xff)], [0x00, 0x01], [0x0b], [0x0f]])
      expect(() => readBatch(Uint8Array.from(bytes))).toThrow(RangeError);
  });

  it("reads numbers that are longer than they need be, or have more bits than they may, as the generated codec does", () => {
    const preview = [0x30, 0x80, 0x80, 0x80, 0x80, 0x80, 0x01];
    const cost = [0x18, 0x85, 0x80, 0x80, 0x80, 0x80, 0x80, 0x00];
    const details = [0xc0, 0x00, 0x80, 0x00];
    const check = [...preview, ...cost, ...details];
    const bytes = Uint8Array.from([0x92, 0x80, 0x00, 0x80 | check.length, 0x00, ...check]);
    expect(readBatch(bytes).checks[0]).toMatchObject({ preview: true, cost: 5, details: false });
    expect(readBatch(bytes)).toEqual(CheckBatchRequest.decode(bytes));
  });

  it("keeps a dimension that is called __proto__, so that it can be refused", () => {
    const entry = [0x0a, 9, ...Buffer.from("__proto__"), 0x12, 1, 0x78];
    const check = [0x12, entry.length, ...entry];
    const { checks } = readBatch(Uint8Array.from([0x12, check.length, ...check]));
    expect(Object.entries(checks[0]!.dimensions)).toEqual([["__proto__", "x"]]);
    expect(Object.getPrototypeOf(checks[0]!.dimensions)).toBe(Object.prototype);
  });

  it("does not mistake one name for another that is alike", () => {
    const names = ["user", "usrr", "uber", "u", "r", "ur", "uxxr"];
    for (const name of [...names, ...names]) {
      const asked = { sequence: 1, checks: [CheckRequest.fromPartial({ dimensions: { [name]: "x" } })], deadlineMs: 0 };
      expect(readBatch(CheckBatchRequest.encode(asked).finish()).checks[0]?.dimensions).toEqual({ [name]: "x" });
    }
  });
});
