import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { parseDictionary, parseList } from "./structured-fields.ts";

describe("a structured list", () => {
  it.each([
    ["", []],
    ["1", [[{ kind: "integer", value: 1 }]]],
    ["-1.5", [[{ kind: "decimal", value: -1.5 }]]],
    ['"a\\"b\\\\c"', [[{ kind: "string", value: 'a"b\\c' }]]],
    ["token/1:x", [[{ kind: "token", value: "token/1:x" }]]],
    ["?1 , ?0", [[{ kind: "boolean", value: true }], [{ kind: "boolean", value: false }]]],
    [":aGk=:", [[{ kind: "bytes", value: ":aGk=:" }]]],
    ["@1700000000", [[{ kind: "date", value: 1_700_000_000 }]]],
    ['%"f%c3%bc"', [[{ kind: "display", value: '%"f%c3%bc"' }]]],
    ['("a" b;x 1);y', [[{ kind: "list" }, "y", { kind: "boolean", value: true }]]],
    ["a;  x=1;x=2", [[{ kind: "token", value: "a" }, "x", { kind: "integer", value: 2 }]]],
  ])("is read: %s", (text, expected) => {
    const members = parseList(text)?.map(({ item, parameters }) => [item, ...[...parameters].flat()]);
    expect(members).toEqual(expected);
  });

  it.each([
    ",",
    "a,",
    "a b",
    '"a',
    '"\\x"',
    '"ü"',
    "1234567890123456",
    "1.",
    "1.2345",
    "--1",
    "a;",
    "a;X=1",
    "a;x=",
    "?2",
    ":a b:",
    "@1.5",
    '%"%C3"',
    "(a",
    "(a(b))",
    "(a)b",
    "a=1",
    "\u0000",
  ])("is malformed as a whole: %j", (text) => {
    expect(parseList(text)).toBeUndefined();
    expect(parseList(`ok, ${text}`)).toBeUndefined();
  });

  it("holds any names and numbers that are written into one", () => {
    const printable = fc.string({
      unit: fc.integer({ min: 0x20, max: 0x7e }).map((code) => String.fromCharCode(code)),
    });
    const items = fc.array(fc.tuple(printable, fc.integer({ min: 0, max: 999_999_999_999_999 })));
    fc.assert(
      fc.property(items, fc.constantFrom(", ", ",", " ,\t"), (written, comma) => {
        const text = written.map(([name, r]) => `"${name.replace(/["\\]/g, "\\$&")}";unknown=?0; r=${r}`).join(comma);
        const read = parseList(text)?.map(({ item, parameters }) => [item, parameters.get("r")]);
        expect(read).toEqual(
          written.map(([name, r]) => [
            { kind: "string", value: name },
            { kind: "integer", value: r },
          ]),
        );
      }),
    );
  });
});

describe("a structured dictionary", () => {
  it("has members by key, of which the last counts", () => {
    const members = parseDictionary("limit=100, flag;x, limit=5");
    expect([...(members ?? [])].map(([key, { item }]) => [key, item])).toEqual([
      ["limit", { kind: "integer", value: 5 }],
      ["flag", { kind: "boolean", value: true }],
    ]);
  });

  it.each(["Limit=1", "limit=", "limit=1,", '"limit"=1', "limit=1 remaining=2"])(
    "is malformed as a whole: %s",
    (text) => {
      expect(parseDictionary(text)).toBeUndefined();
    },
  );

  it("gives no key a special meaning", () => {
    const members = parseDictionary("__proto__=1, constructor=2");
    expect(members).toBeUndefined();
    expect(parseDictionary("constructor=2, tostring=1")?.get("valueof")).toBeUndefined();
    expect(({} as Record<string, unknown>).limit).toBeUndefined();
  });
});
