import { BinaryWriter } from "@bufbuild/protobuf/wire";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { InPlaceWriter, type PlainWriter } from "./in-place-writer.ts";

const step: fc.Arbitrary<(writer: PlainWriter) => void> = fc.oneof(
  fc.nat(2 ** 31 - 1).map((value) => (writer: PlainWriter) => void writer.uint32(value)),
  fc.nat(2 ** 31 - 1).map((value) => (writer: PlainWriter) => void writer.int32(value)),
  fc.maxSafeNat().map((value) => (writer: PlainWriter) => void writer.int64(value)),
  fc.boolean().map((value) => (writer: PlainWriter) => void writer.bool(value)),
  fc.double().map((value) => (writer: PlainWriter) => void writer.double(value)),
  fc.uint8Array({ maxLength: 30 }).map((value) => (writer: PlainWriter) => void writer.raw(value)),
);

describe("a message written in place", () => {
  it("has the same bytes as one that is not", () => {
    fc.assert(
      fc.property(fc.array(step, { maxLength: 30 }), fc.nat(50), (steps, start) => {
        const usual = new BinaryWriter();
        const inPlace = new InPlaceWriter();
        const bytes = Buffer.alloc(2_000);
        inPlace.begin(bytes, start, bytes.length);
        for (const write of steps) {
          write(usual);
          write(inPlace);
        }
        expect(bytes.subarray(start, inPlace.at)).toEqual(Buffer.from(usual.finish()));
      }),
    );
  });

  it("is given up where it does not fit, and writes nothing behind its end", () => {
    const bytes = Buffer.alloc(20);
    const writer = new InPlaceWriter();
    for (const write of [
      () => writer.raw(new Uint8Array(11)),
      () => writer.double(1).double(2),
      () => writer.int64(1).int64(2),
      () => writer.int32(-1),
    ]) {
      writer.begin(bytes, 0, 10);
      expect(write).toThrow(RangeError);
    }
    expect(bytes.subarray(10)).toEqual(Buffer.alloc(10));
  });
});
