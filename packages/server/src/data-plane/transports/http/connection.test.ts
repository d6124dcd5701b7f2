import type { Socket } from "node:net";
import { Duplex } from "node:stream";
import { expect, it } from "vitest";
import { HeldBytes } from "../held-bytes.ts";
import { Turns } from "../turns.ts";
import { Connection } from "./connection.ts";

/** A connection whose client reads only when asked to. */
function startUnread(): { socket: Duplex; connection: Connection; read: () => void } {
  const waiting: (() => void)[] = [];
  const socket = new Duplex({
    read() {},
    write: (_chunk, _encoding, done) => {
      waiting.push(done);
    },
  });
  socket.on("data", () => {});
  const connection = new Connection(socket as Socket, {
    protocol: "http",
    answer() {},
    turns: new Turns(),
    held: new HeldBytes(),
    unreadMs: 30_000,
    keptFor: "timeout=72",
    maxRequests: 1_000_000,
    answerWhole: () => false,
    onAnswered() {},
  });
  return { socket, connection, read: () => waiting.shift()?.() };
}

it("closes on a client that reads a little now and then, and so never comes to the end of an answer", () => {
  const { socket, connection, read } = startUnread();
  // So many bytes are worth 10 s more.
  for (let i = 0; i < 64; i++) socket.write("x".repeat(10_000));
  for (let nowMs = 0; nowMs <= 40_000; nowMs += 1_000) {
    connection.closeIfUnread(nowMs);
    if (nowMs % 2_000 === 0) read();
    expect(socket.destroyed, `after ${nowMs} ms`).toBe(false);
  }
  connection.closeIfUnread(41_000);
  expect(socket.destroyed).toBe(true);
});

it("stays open for a client that reads all of it in time", () => {
  const { socket, connection, read } = startUnread();
  for (let i = 0; i < 64; i++) socket.write("x".repeat(10_000));
  connection.closeIfUnread(0);
  for (let i = 0; i < 64; i++) read();
  connection.closeIfUnread(30_000);
  socket.write("another answer");
  connection.closeIfUnread(59_000);
  expect(socket.destroyed).toBe(false);
});
