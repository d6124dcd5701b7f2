import { describe, expect, it } from "vitest";
import { decodeReply, encodeCommand, ReplyError } from "./src/resp-connection.ts";

function decode(text: string): unknown {
  const bytes = Buffer.from(text);
  const reply = decodeReply(bytes, 0);
  expect(reply?.end).toBe(bytes.length);
  return reply?.value;
}

describe("commands and replies on the wire", () => {
  it("counts bytes, not characters", () => {
    expect(encodeCommand(["SET", "ключ", 7, Buffer.from([0xff])]).toString("latin1")).toBe(
      `${Buffer.from("*4\r\n$3\r\nSET\r\n$8\r\nключ\r\n$1\r\n7\r\n$1\r\n").toString("latin1")}\xff\r\n`,
    );
    expect(decode("$8\r\nключ\r\n")).toBe("ключ");
  });

  it.each([
    ["a status", "+OK\r\n", "OK"],
    ["a number", ":-12\r\n", -12],
    ["a string with line ends", "$4\r\na\r\nb\r\n", "a\r\nb"],
    ["an absent string", "$-1\r\n", null],
    ["an absent list", "*-1\r\n", null],
    ["a list in a list", "*2\r\n*1\r\n:1\r\n$0\r\n\r\n", [[1], ""]],
    ["an error in a list", "*1\r\n-ERR no\r\n", [new ReplyError("ERR no")]],
  ])("reads %s", (_what, text, value) => {
    expect(decode(text)).toEqual(value);
  });

  it("waits for a reply that is not there whole", () => {
    const whole = "*2\r\n$3\r\nabc\r\n:1\r\n";
    for (let length = 0; length < whole.length; length += 1) {
      expect(decodeReply(Buffer.from(whole.slice(0, length)), 0)).toBeUndefined();
    }
    expect(decode(whole)).toEqual(["abc", 1]);
  });
});
