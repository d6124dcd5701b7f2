import { expect, it } from "vitest";
import type { AnswerStream } from "../../data-plane/transports/http/exchange.ts";
import { OpenStream } from "./open-stream.ts";

const caller = { name: "a", may: new Set(["read"] as const) };
const request = {
  topics: new Set(["changes"] as const),
  filter: {},
  credential: { by: "bearer", token: "t", identify: () => caller },
} as const;

function openFor(stream: { unreadBytes: number }) {
  const written: string[] = [];
  let destroyed = 0;
  const answer: AnswerStream = {
    write: (text) => written.push(text),
    get unreadBytes(): number {
      return stream.unreadBytes;
    },
    end() {},
    destroy: () => {
      destroyed += 1;
    },
    onClose() {},
  };
  return { open: new OpenStream(request, answer, undefined), written, destroyed: () => destroyed };
}

it("sends a comment when nothing else was sent for fifteen seconds", () => {
  const { open, written } = openFor({ unreadBytes: 0 });
  for (let round = 0; round < 29; round++) open.look();
  expect(written).toEqual([]);
  open.look();
  expect(written).toEqual([":\n\n"]);
  open.send("changes", {});
  for (let round = 0; round < 29; round++) open.look();
  expect(written).toHaveLength(2);
});

it("sends nothing more to a client that does not read, and gives it up after ten seconds", () => {
  const stream = { unreadBytes: 300_000 };
  const { open, written, destroyed } = openFor(stream);
  for (let round = 0; round < 20; round++) {
    open.look();
    open.send("changes", { some: "text" });
  }
  expect([written.length, destroyed()]).toEqual([0, 0]);
  open.look();
  expect(destroyed()).toBe(1);
  expect(written).toEqual(['event: end\ndata: {"reason":"too_slow"}\n\n']);
});

it("forgives a client that catches up", () => {
  const stream = { unreadBytes: 300_000 };
  const { open, destroyed } = openFor(stream);
  for (let round = 0; round < 20; round++) open.look();
  stream.unreadBytes = 0;
  open.look();
  stream.unreadBytes = 300_000;
  for (let round = 0; round < 20; round++) open.look();
  expect(destroyed()).toBe(0);
});
