import { describe, expect, it } from "vitest";
import { ProtocolError } from "./protocol-error.ts";
import { splitInline } from "./split-inline.ts";

describe("a typed line", () => {
  it.each([
    ["", []],
    [" \t\r", []],
    ["ping", ["ping"]],
    ["  a   b\tc \r", ["a", "b", "c"]],
    ["set \"a b\" 'c d'", ["set", "a b", "c d"]],
    ['""', [""]],
    [String.raw`"\x41\n\"\q\xzz"`, ['A\n"qxzz']],
    [String.raw`'it\'s \n'`, [String.raw`it's \n`]],
    [`user="a b"`, ["user=a b"]],
  ])("is split as Redis does: %j", (line, words) => {
    expect(splitInline(line)).toEqual(words);
  });

  it.each([`"a`, `'a`, `"a"b`, `a "b`, String.raw`"a\"`])("must have its quotes in pairs: %j", (line) => {
    expect(() => splitInline(line)).toThrow(ProtocolError);
  });
});
