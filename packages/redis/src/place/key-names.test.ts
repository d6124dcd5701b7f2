import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { createKeyNames, identityCode } from "./key-names.ts";

const names = createKeyNames("s{a7}");
const code = identityCode("policy/limit");

/** Any sequence of UTF-16 units, halves of surrogate pairs among them, and many that look like something else. */
const anyText = fc.oneof(
  fc.array(fc.integer({ min: 0, max: 0xffff })).map((units) => String.fromCharCode(...units)),
  fc.string({
    unit: fc.constantFrom("a", "#", ":", "!", "|", "\\", "{", "}", " ", "i", "r", "\ud800", "\udfff", "\0"),
  }),
  fc.tuple(fc.constantFrom("a", "#", "ü"), fc.integer({ min: 60, max: 70 })).map(([text, times]) => text.repeat(times)),
);

describe("names of keys", () => {
  it("show a subject that is short and plain", () => {
    expect(names.counter(code, "acme|u1")).toBe(`s{a7}:${code}:acme|u1`);
    expect(names.mark(code, "acme|u1")).toBe(`s{a7}:${code}!acme|u1`);
    expect(names.requestId("order 7")).toBe("s{a7}:i:order 7");
    expect(names.receipt("Ab_-9")).toBe("s{a7}:r:Ab_-9");
    expect(names.counter(code, "")).toBe(`s{a7}:${code}:`);
  });

  it.each([
    ["is long", "x".repeat(65)],
    ["has a line break in it", "a\r\nDEL b"],
    ["has a zero in it", "a\0b"],
    ["is not ASCII", "ünï"],
    ["is half a character", "\ud83d"],
    ["begins as hashes do", "#abc"],
    ["is a mebibyte", "x".repeat(2 ** 20)],
  ])("hash a subject that %s", (_, subject) => {
    expect(names.counter(code, subject)).toMatch(/^s\{a7\}:[\w-]{10}:#[\w-]{27}$/);
    expect(names.requestId(subject)).toMatch(/^s\{a7\}:i:#[\w-]{27}$/);
  });

  it("keep the longest subject that is shown apart from its hash", () => {
    const longest = "x".repeat(64);
    expect(names.counter(code, longest)).toBe(`s{a7}:${code}:${longest}`);
    const hashed = names.counter(code, "#").slice(`s{a7}:${code}:`.length);
    expect(names.counter(code, hashed)).not.toBe(names.counter(code, "#"));
  });

  it("are different for any two different subjects, and of different kinds never the same", () => {
    fc.assert(
      fc.property(fc.uniqueArray(anyText, { minLength: 2, maxLength: 8 }), (texts) => {
        const all = texts.flatMap((text) => [
          names.counter(code, text),
          names.mark(code, text),
          names.requestId(text),
          names.counter(identityCode("other"), text),
        ]);
        expect(new Set([...all, names.receipt("i"), names.receipt(code)]).size).toBe(all.length + 2);
      }),
      { numRuns: 500 },
    );
  });

  it("are short and printable, and begin with prefix and tag, whatever the subject", () => {
    fc.assert(
      fc.property(anyText, (text) => {
        for (const name of [names.counter(code, text), names.mark(code, text), names.requestId(text)]) {
          expect(name).toMatch(/^s\{a7\}:[ -~]{0,80}$/);
        }
      }),
    );
  });

  it("stand for an identity by ten letters, the same for ever", () => {
    expect(identityCode("policy/limit")).toBe("E8r6IeVnIZ");
    fc.assert(
      fc.property(fc.uniqueArray(anyText, { minLength: 2 }), (identities) => {
        const codes = identities.map(identityCode);
        for (const one of codes) expect(one).toMatch(/^[\w-]{10}$/);
        expect(new Set(codes).size).toBe(codes.length);
        expect(identities.map(identityCode)).toEqual(codes);
      }),
    );
  });
});
