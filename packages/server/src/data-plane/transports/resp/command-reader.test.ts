import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { CommandReader, maxArguments, maxCommandBytes } from "./command-reader.ts";
import { ProtocolError } from "./protocol-error.ts";

function encode(words: readonly string[]): string {
  return `*${words.length}\r\n${words.map((word) => `$${word.length}\r\n${word}\r\n`).join("")}`;
}

/**
 * Every command in bytes that arrive piece by piece, one character for each byte; a protocol error is the last of them.
 */
function readAll(pieces: readonly Buffer[]): (readonly string[] | string)[] {
  const reader = new CommandReader();
  const seen: (readonly string[] | string)[] = [];
  for (const piece of pieces) {
    reader.push(piece);
    try {
      while (reader.next()) seen.push(Array.from({ length: reader.count }, (_, i) => reader.bytes(i)));
    } catch (error) {
      if (!(error instanceof ProtocolError)) throw error;
      return [...seen, error.message];
    }
  }
  return seen;
}

const bytes = (text: string): Buffer => Buffer.from(text, "latin1");

describe("reading commands", () => {
  const conversation = `${encode(["CL.THROTTLE", "a\r\n$1\r\nb", "15", "30", "60"])}ping\r\n*0\r\n\r\n${encode(["", "\xff\x00"])}echo "a b"\n`;
  const commands = [["CL.THROTTLE", "a\r\n$1\r\nb", "15", "30", "60"], ["ping"], ["", "\xff\x00"], ["echo", "a b"]];

  it("finds them wherever the bytes are cut", () => {
    const whole = bytes(conversation);
    expect(readAll([whole])).toEqual(commands);
    for (let cut = 1; cut < whole.length; cut++)
      expect(readAll([whole.subarray(0, cut), whole.subarray(cut)]), `cut at ${cut}`).toEqual(commands);
    expect(readAll([...whole].map((byte) => Buffer.from([byte])))).toEqual(commands);
  });

  it("finds any commands, in any pieces", () => {
    const word = fc.string({ unit: fc.integer({ min: 0, max: 255 }).map((code) => String.fromCharCode(code)) });
    const some = fc.array(fc.array(word, { minLength: 1, maxLength: 8 }), { maxLength: 8 });
    fc.assert(
      fc.property(some, fc.array(fc.integer({ min: 1, max: 40 }), { minLength: 1 }), (sent, sizes) => {
        const whole = bytes(sent.map(encode).join(""));
        const pieces: Buffer[] = [];
        for (let at = 0, i = 0; at < whole.length; i++) {
          const size = sizes[i % sizes.length]!;
          pieces.push(whole.subarray(at, at + size));
          at += size;
        }
        expect(readAll(pieces)).toEqual(sent);
      }),
    );
  });

  it("makes of random bytes commands or a protocol error, and nothing else", () => {
    const noise = fc.array(
      fc.oneof(fc.uint8Array({ maxLength: 50 }), fc.constantFrom("*1\r\n", "$4\r\nPING\r\n", "*", "$", "\r\n", "-1")),
      { maxLength: 20 },
    );
    fc.assert(
      fc.property(noise, (pieces) => {
        for (const seen of readAll(
          pieces.map((piece) => (typeof piece === "string" ? bytes(piece) : Buffer.from(piece))),
        ))
          expect(typeof seen === "string" || (seen.length > 0 && seen.length <= maxArguments)).toBe(true);
      }),
      { seed: 20_260_101, numRuns: 500 },
    );
  });

  it.each([
    ["*x\r\n", "invalid multibulk length"],
    ["*\r\n", "invalid multibulk length"],
    ["*1\n", "invalid multibulk length"],
    ["*1\rx", "invalid multibulk length"],
    ["*12345678901", "invalid multibulk length"],
    ["*00000000001\r\n$4\r\nPING\r\n", "invalid multibulk length"],
    ["*1\r\n$-00000000000", "invalid bulk length"],
    [`*${maxArguments + 1}\r\n`, "invalid multibulk length"],
    ["*1\r\n:1\r\n", "expected '$', got ':'"],
    ["*1\r\n\x01", "expected '$', got '\\x01'"],
    ["*1\r\n$-1\r\n", "invalid bulk length"],
    ["*1\r\n$1x\r\n", "invalid bulk length"],
    [`*1\r\n$${maxCommandBytes + 1}\r\n`, "invalid bulk length"],
    ["*1\r\n$1\r\nabc", "expected CRLF at the end of a bulk string"],
    ["*1\r\n$1\r\na\rb", "expected CRLF at the end of a bulk string"],
    ["*1\r\n$1\r\nab\n", "expected CRLF at the end of a bulk string"],
    ["*1\r\n*1\r\n$4\r\nPING\r\n", "expected '$', got '*'"],
    [`${"a".repeat(maxCommandBytes)}\n`, `a command has at most ${maxCommandBytes} bytes`],
    ["a".repeat(maxCommandBytes + 1), `a command has at most ${maxCommandBytes} bytes`],
    ['say "so\r\n', "unbalanced quotes in request"],
    [`${"a ".repeat(maxArguments + 1)}\r\n`, "too many words in an inline request"],
  ])("refuses %j", (sent, message) => {
    expect(readAll([bytes(sent)])).toEqual([message]);
  });

  it("refuses a command before all of it is there, when its lengths say that it is too long", () => {
    const first = encode(["a".repeat(40_000)]).replace("*1", "*2");
    expect(readAll([bytes(`${first}$30000\r\n`)])).toEqual([`a command has at most ${maxCommandBytes} bytes`]);
    const words = Array.from({ length: maxArguments }, (_, i) => `${i}`);
    expect(readAll([bytes(encode(words))])).toEqual([words]);
  });

  it("lets a caller have smaller commands only", () => {
    const reader = new CommandReader();
    const long = "a".repeat(50);
    reader.push(bytes(encode(["ab", long])));
    expect(() => reader.next(50)).toThrow("a command has at most 50 bytes");
    expect(reader.next(1_000)).toBe(true);
    reader.push(bytes(`${long}${long}`));
    expect(() => reader.next(50)).toThrow("a command has at most 50 bytes");
  });

  it("keeps no more of what arrived than is left to read", async () => {
    setFlagsFromString("--expose-gc");
    const collectGarbage = runInNewContext("gc") as () => void;
    const heldBytes = (): number => {
      collectGarbage();
      return process.memoryUsage().arrayBuffers;
    };
    const before = heldBytes();
    const readers = Array.from({ length: 500 }, () => {
      const reader = new CommandReader();
      const ping = encode(["ping"]);
      for (const piece of [
        ping.repeat(4_000) + ping.slice(0, 5),
        ping.slice(5) + ping.repeat(4_000) + ping.slice(0, 5),
      ]) {
        reader.push(Buffer.from(piece));
        while (reader.next());
      }
      return reader;
    });
    await expect.poll(() => heldBytes() - before, { timeout: 30_000 }).toBeLessThan(500 * 4_096);
    expect(readers.every((reader) => reader.isHalfway)).toBe(true);
  });

  it("knows names in any case, and no others", () => {
    const reader = new CommandReader();
    reader.push(bytes(`${encode(["Cl.ThRoTtLe"])}${encode(["CL\x0eTHROTTLE"])}`));
    reader.next();
    expect(reader.isNamed("cl.throttle")).toBe(true);
    const hash = reader.nameHash();
    reader.next();
    expect(reader.nameHash()).toBe(hash);
    expect(reader.isNamed("cl.throttle")).toBe(false);
  });
});
