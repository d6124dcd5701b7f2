import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { decodeText } from "./decode-text.ts";

const decode = (bytes: Uint8Array): string => decodeText(Buffer.from(bytes), 0, bytes.length);

describe("a key's text", () => {
  it("is what its bytes are in UTF-8", () => {
    for (const text of ["", "user:1", "müßig", "用户", "😀", "a\u0000b"]) expect(decode(Buffer.from(text))).toBe(text);
  });

  it("differs for different bytes, whatever they are, even written as UTF-8 again", () => {
    const bytes = fc.oneof(
      fc.uint8Array({ maxLength: 6 }),
      fc.string().map((text) => Buffer.from(text)),
      fc
        .constantFrom([0xff], [0xc3, 0xbf], [0xf4, 0x8f, 0xbf, 0xbf], [0xf4, 0x8f, 0xbf, 0xbf, 0xc3, 0xbf])
        .map(Buffer.from),
      fc.constantFrom([0xed, 0xa0, 0x80], [0xef, 0xbf, 0xbd], [0xf4, 0x8f, 0xbf, 0xbf, 0xff]).map(Buffer.from),
    );
    fc.assert(
      fc.property(bytes, bytes, (one, other) => {
        const same = Buffer.compare(one, other) === 0;
        expect(Buffer.from(decode(one)).equals(Buffer.from(decode(other)))).toBe(same);
      }),
      { numRuns: 2_000 },
    );
    expect(decode(Buffer.from([0xff]))).not.toBe(decode(Buffer.from("\u{10FFFF}ÿ")));
  });

  it("keeps bytes that are not UTF-8, one character for each", () => {
    expect(decode(Buffer.from([0x61, 0xff]))).toBe("\u{10FFFF}aÿ");
  });
});
