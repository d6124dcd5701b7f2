import { createHash } from "node:crypto";
import { describe, expect, it } from "vitest";
import { compileScript, renderScripts } from "../../scripts/embed-lua.mjs";

const includes = new Map([
  ["time", "-- What time it is.\nlocal now = redis.call('TIME')\n"],
  ["deadline", "local deadline = ARGV[1] + 0\n"],
]);

const good = `--- Adds two numbers to a counter.
---
--- KEYS: the counter
--- ARGV[1]: the first
--- ARGV[2]: the second,
---          which may be negative
--- returns: the counter
--- include: time

-- Both at once.
return redis.call('INCRBY', KEYS[1], ARGV[1] + ARGV[2])
`;

/** The good one with one change. */
function changed(from: string | RegExp, to: string): string {
  const text = good.replace(from, to);
  if (text === good) throw new Error(`nothing to change: ${from}`);
  return text;
}

const compile = (text: string): ReturnType<typeof compileScript> => compileScript("add", text, includes);

describe("a script whose header agrees with its body", () => {
  it("is its includes and its body, without comments, known by its digest", () => {
    const { purpose, source, digest } = compile(good);
    expect(purpose).toBe("Adds two numbers to a counter.");
    expect(source).toBe("local now = redis.call('TIME')\nreturn redis.call('INCRBY', KEYS[1], ARGV[1] + ARGV[2])\n");
    expect(digest).toBe(createHash("sha1").update(source).digest("hex"));
  });

  it("may reach arguments after the last declared one by index", () => {
    const counting = changed("ARGV[1] + ARGV[2]", "ARGV[1] + ARGV[first + 1]");
    expect(compile(counting).source).toContain("ARGV[first + 1]");
  });

  it("uses the arguments of its includes", () => {
    const including = changed("--- include: time", "--- include: time, deadline").replace(
      "ARGV[1] + ARGV[2]",
      "ARGV[2]",
    );
    expect(compile(including).source).toMatch(/^local now.*\nlocal deadline.*\nreturn .*\n$/);
  });

  it("may do without arguments and includes", () => {
    expect(compile("--- Does nothing much.\n--- KEYS: none\n--- returns: 1\n\nreturn 1\n").source).toBe("return 1\n");
  });
});

describe("refused is a script", () => {
  it.each([
    ["without a header", "return 1\n", "the first line must say what the script is for"],
    ["without a purpose", changed("--- Adds two numbers to a counter.\n---\n", ""), "the first line must say"],
    ["with a purpose that is a field", changed("Adds two numbers to a counter.", "KEYS: a counter"), "the first line"],
    ["without its keys", changed("--- KEYS: the counter\n", ""), "its header has no KEYS"],
    ["without what it returns", changed("--- returns: the counter\n", ""), "its header has no returns"],
    ["with an argument that is not declared", changed(/--- ARGV\[1\].*\n/, ""), "uses ARGV[1], which its header"],
    ["that uses one more than it declares", changed("+ ARGV[2]", "+ ARGV[2] + ARGV[3]"), "uses ARGV[3], which"],
    ["with an argument that is not used", changed("ARGV[1] + ", ""), "declares ARGV[1], which it does not use"],
    ["with a last argument that is not used", changed(" + ARGV[2]", ""), "declares ARGV[2], which it does not use"],
    ["with a missing include", changed("include: time", "include: time, tide"), "no include/tide.lua"],
    [
      "whose include uses an undeclared argument",
      changed("include: time", "include: deadline")
        .replace(/--- ARGV\[1\].*\n/, "")
        .replace("ARGV[1] + ", ""),
      "uses ARGV[1], which",
    ],
  ])("%s", (_, text, because) => {
    expect(() => compile(text)).toThrow(because);
    expect(() => compile(text)).toThrow(/^add\.lua: /);
  });
});

describe("all scripts", () => {
  it("compile, each by its digest", () => {
    const rendered = renderScripts();
    const digests = [...rendered.matchAll(/digest: "([0-9a-f]{40})"/g)].map(([, digest]) => digest);
    expect(new Set(digests).size).toBe(digests.length);
    expect(digests.length).toBeGreaterThan(4);
    expect(rendered).not.toMatch(/^\s*--/m);
  });
});
