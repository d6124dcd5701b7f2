import { PassThrough } from "node:stream";
import { expect, it } from "vitest";
import { confirm } from "./confirm.ts";

it("asks in words that a terminal does not obey, on as many lines as were meant", async () => {
  let told = "";
  const stdin = Object.assign(new PassThrough(), { isTTY: true });
  const terminal = { stdout: { write: () => {} }, stderr: { write: (text: string) => (told += text) }, stdin };
  stdin.end("y\n");
  expect(await confirm({ question: "Delete p\u001b[2J?\nIt\u009b31m ends.", yes: false }, terminal)).toBe(true);
  expect(told).toBe("Delete p\\u001b[2J?\nIt\\u009b31m ends. [y/N] ");
});
