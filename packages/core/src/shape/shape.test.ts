import { describe, expect, it } from "vitest";
import { renderProblem, SluiceError } from "../errors.ts";
import { byType, listOf, oneOrMany } from "./list-shapes.ts";
import { mapOf, objectOf, openObjectOf } from "./object-shapes.ts";
import { isAboutKey } from "./reading.ts";
import {
  boolean,
  choice,
  described,
  integer,
  number,
  parseShape,
  readShape,
  refine,
  type Shape,
  text,
} from "./shape.ts";

function findProblems(shape: Shape<unknown>, value: unknown): string[] {
  const result = readShape(shape, value);
  return result.ok ? [] : result.problems.map(renderProblem);
}

function readValue<T>(shape: Shape<T>, value: unknown): T {
  const result = readShape(shape, value);
  if (!result.ok) throw new Error(result.problems.map(renderProblem).join("\n"));
  return result.value;
}

describe("scalar shapes", () => {
  it("reads texts within their length and form", () => {
    const id = text({ max: 5, pattern: /^[a-z]+$/, form: "small letters" });
    expect(readValue(id, "abc")).toBe("abc");
    expect(findProblems(id, "ABC")).toEqual(['(root): must be small letters, but is "ABC"']);
    expect(findProblems(id, "abcdef")).toEqual(["(root): must have 1 to 5 characters, but has 6"]);
    expect(findProblems(id, "")).toEqual(["(root): must have 1 to 5 characters, but has 0"]);
    expect(findProblems(id, null)).toEqual(["(root): must be a text, but is empty"]);
  });

  it("explains how to make a text of a number", () => {
    expect(findProblems(text(), 42)).toEqual(['(root): must be a text, but is the number 42; put it in quotes: "42"']);
  });

  it("reads numbers within bounds, both included", () => {
    const share = number({ min: 0, max: 1 });
    expect(readValue(share, 0)).toBe(0);
    expect(readValue(share, 1)).toBe(1);
    expect(findProblems(share, 1.01)).toEqual(["(root): must be a number from 0 to 1, but is 1.01"]);
    expect(findProblems(number({ min: 1 }), 0)).toEqual(["(root): must be a number of at least 1, but is 0"]);
    expect(findProblems(number({ max: 1 }), 2)).toEqual(["(root): must be a number of at most 1, but is 2"]);
  });

  it.each([Number.NaN, Number.POSITIVE_INFINITY, "1", null, [1]])("does not take %s for a number", (value) => {
    expect(findProblems(number(), value)).toHaveLength(1);
    expect(findProblems(integer(), value)).toHaveLength(1);
  });

  it("requires whole numbers if it says so", () => {
    expect(findProblems(integer(), 1.5)).toEqual(["(root): must be a whole number, but is 1.5"]);
    expect(findProblems(integer(), 2 ** 53)).toHaveLength(1);
  });

  it("reads nothing but true and false as a boolean", () => {
    expect(readValue(boolean, false)).toBe(false);
    expect(findProblems(boolean, "yes")).toEqual(['(root): must be true or false, but is "yes"']);
  });

  it("suggests the word of a choice that was meant", () => {
    const mode = choice(["enforce", "shadow"]);
    expect(readValue(mode, "shadow")).toBe("shadow");
    expect(findProblems(mode, "shadwo")).toEqual([
      '(root): must be one of enforce, shadow, but is "shadwo"; did you mean shadow?',
    ]);
    expect(findProblems(mode, 1)).toEqual(["(root): must be one of enforce, shadow, but is 1"]);
  });
});

describe("lists and unions", () => {
  it("notes a problem with every bad item", () => {
    expect(findProblems(listOf(integer()), [1, "a", 2, null])).toEqual([
      '[1]: must be a whole number, but is "a"',
      "[3]: must be a whole number, but is empty",
    ]);
  });

  it("bounds the size of a list, and does not look into one that is too long", () => {
    expect(findProblems(listOf(integer(), { min: 1, max: 2 }), ["a", "b", "c"])).toEqual([
      "(root): must have 1 to 2 entries, but has 3",
    ]);
    expect(findProblems(listOf(integer()), Array(10_001).fill("a"))).toHaveLength(1);
  });

  it("reads one in place of a list of one", () => {
    const tags = oneOrMany(text());
    expect(readValue(tags, "a")).toEqual(["a"]);
    expect(readValue(tags, ["a", "b"])).toEqual(["a", "b"]);
  });

  it("distinguishes a union's members by type", () => {
    const size = byType({ number: number(), text: text(), object: objectOf({ bytes: number() }) });
    expect(readValue(size, 1)).toBe(1);
    expect(readValue(size, "1k")).toBe("1k");
    expect(readValue(size, { bytes: 5 })).toEqual({ bytes: 5 });
    expect(findProblems(size, { bytes: "a" })).toEqual(['bytes: must be a number, but is "a"']);
    expect(findProblems(size, [])).toEqual(["(root): must be a number, or a text, or an object, but is a list"]);
  });
});

describe("objects", () => {
  const person = objectOf({ name: text() }, { age: integer({ min: 0 }), tags: listOf(text()) });

  it("reads known keys, and leaves out absent ones", () => {
    expect(readValue(person, { name: "Ada", age: undefined })).toStrictEqual({ name: "Ada" });
  });

  it("notes every problem at once, each at its own path", () => {
    expect(findProblems(person, { aeg: 5, age: -1, tags: ["a", 1] })).toEqual([
      "aeg: is not a known key; did you mean age?",
      "name: is missing; it must be a text",
      "age: must be a whole number of at least 0, but is -1",
      'tags[1]: must be a text, but is the number 1; put it in quotes: "1"',
    ]);
  });

  it("lists the known keys if it has no suggestion", () => {
    expect(findProblems(person, { name: "Ada", height: 1 })).toEqual([
      "height: is not a known key; known here: name, age, tags",
    ]);
  });

  it("does not call a key missing that is only misspelt", () => {
    expect(findProblems(person, { nmae: "Ada" })).toEqual(["nmae: is not a known key; did you mean name?"]);
  });

  it("marks problems with keys, so that an editor can point at the key", () => {
    const result = readShape(person, { name: 1, nam: "Ada" });
    const problems = result.ok ? [] : result.problems;
    expect(problems.map((problem) => [problem.path, isAboutKey(problem)])).toEqual([
      [["nam"], true],
      [["name"], false],
    ]);
  });

  it.each([[[]], ["text"], [null], [new Map()], [new Date(0)]])("does not take %s for an object", (value) => {
    expect(findProblems(person, value)).toHaveLength(1);
  });

  it("reads chosen names in a map, and checks them", () => {
    const map = mapOf(text({ pattern: /^[a-z]+$/, form: "small letters" }), integer());
    expect(readValue(map, { a: 1, b: 2 })).toEqual({ a: 1, b: 2 });
    expect(findProblems(map, { A: 1, b: "x" })).toEqual([
      'A: must be small letters, but is "A"',
      'b: must be a whole number, but is "x"',
    ]);
  });

  it("separates known keys from chosen names", () => {
    const match = openObjectOf({ method: text() }, { key: text(), value: text(), max: 2 });
    expect(readValue(match, { method: "GET", user: "u1" })).toEqual({
      known: { method: "GET" },
      others: { user: "u1" },
    });
    expect(findProblems(match, { a: "1", b: "2", c: "3" })).toEqual(["(root): must have at most 2 keys, but has 3"]);
  });
});

describe("hostile input", () => {
  const polluting = JSON.parse('{ "__proto__": { "polluted": true }, "constructor": 1 }') as unknown;

  it("never sets a prototype", () => {
    const map = mapOf(text(), byType({ number: number(), object: mapOf(text(), boolean) }));
    expect(findProblems(map, polluting)).toEqual(["__proto__: is not allowed as a name"]);
    expect(findProblems(objectOf({}, { a: text() }), polluting)).toHaveLength(2);
    expect(findProblems(openObjectOf({ a: text() }, { key: text(), value: number(), max: 5 }), polluting)).toEqual([
      "__proto__: is not allowed as a name",
    ]);
    expect(({} as { polluted?: boolean }).polluted).toBeUndefined();
  });

  it("reads maps in which names that were not written are not found", () => {
    const map = readValue(mapOf(text(), number()), { a: 1 });
    expect(map.constructor).toBeUndefined();
    expect(map.toString).toBeUndefined();
  });

  it("takes no key from a prototype", () => {
    expect(findProblems(objectOf({ toString: text() }), {})).toEqual(["toString: is missing; it must be a text"]);
  });

  it("stops at a depth that no honest document has", () => {
    const nested: Shape<unknown> = {
      name: "a list of lists",
      schema: {},
      read: (value, reading) => listOf(nested).read(value, reading),
    };
    let value: unknown[] = [];
    for (let depth = 0; depth < 10_000; depth++) value = [value];
    const problems = findProblems(nested, value);
    expect(problems).toHaveLength(1);
    expect(problems[0]).toContain("is nested more than 64 levels deep");
  });

  it("stops noting problems after a thousand, and says so", () => {
    const result = readShape(listOf(integer()), Array(5_000).fill("a"));
    const problems = result.ok ? [] : result.problems;
    expect(problems).toHaveLength(1_001);
    expect(problems.at(-1)?.message).toBe("has more problems; these are the first 1000");
  });
});

describe("parseShape", () => {
  it("throws one error with every problem, and the first few in its message", () => {
    const parse = () =>
      parseShape(listOf(integer()), ["a", "b", "c", "d", "e", "f", "g"], "invalid_request", "the body");
    expect(parse).toThrow(SluiceError);
    try {
      parse();
    } catch (error) {
      const { code, message, problems } = error as SluiceError;
      expect(code).toBe("invalid_request");
      expect(problems).toHaveLength(7);
      expect(message).toMatch(/^7 problems in the body:\n {2}\[0\]: must be a whole number, but is "a"\n/);
      expect(message).toMatch(/\n {2}and 2 more$/);
    }
  });
});

describe("schemas", () => {
  it("say what is read", () => {
    const shape = objectOf(
      { id: described(text({ max: 8, pattern: /^a/ }), "Its name.") },
      { mode: choice(["a", "b"]), sizes: oneOrMany(integer({ min: 1 })) },
    );
    expect(shape.schema).toEqual({
      type: "object",
      properties: {
        id: { type: "string", minLength: 1, maxLength: 8, pattern: "^a", description: "Its name." },
        mode: { type: "string", enum: ["a", "b"] },
        sizes: {
          anyOf: [
            { type: "integer", minimum: 1 },
            { type: "array", items: { type: "integer", minimum: 1 }, maxItems: 10_000 },
          ],
        },
      },
      required: ["id"],
      additionalProperties: false,
    });
  });

  it("stay as they are when a shape is refined", () => {
    const even = refine(integer(), (value, reading) => (value % 2 === 0 ? value / 2 : reading.problem("must be even")));
    expect(even.schema).toEqual({ type: "integer" });
    expect(readValue(even, 4)).toBe(2);
    expect(findProblems(even, 3)).toEqual(["(root): must be even"]);
  });
});
