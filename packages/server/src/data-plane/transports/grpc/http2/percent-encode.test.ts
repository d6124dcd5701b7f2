import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { percentEncode } from "./percent-encode.ts";

describe("grpc-message", () => {
  it("is printable ASCII, and decodes to the same text", () => {
    fc.assert(
      fc.property(fc.string({ unit: "grapheme" }), (text) => {
        const encoded = percentEncode(text);
        expect(encoded).toMatch(/^[\x20-\x7e]*$/);
        expect(decodeURIComponent(encoded)).toBe(text);
      }),
    );
  });

  it("keeps what needs no code", () => {
    expect(percentEncode("a b/c?d=1 & ü %\n")).toBe("a b/c?d=1 & %C3%BC %25%0A");
  });
});
