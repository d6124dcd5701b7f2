import { describe, expect, it } from "vitest";
import { EventStreamReader, maxPendingLength, reconnectDelayMs } from "./event-stream.ts";

describe("an event stream", () => {
  const text = 'id: 7\nevent: tick\ndata: {"a":1}\n\n: heartbeat\n\ndata: one\ndata: two\n\n';
  const events = [
    { id: "7", event: "tick", data: '{"a":1}' },
    { id: "7", event: "message", data: "one\ntwo" },
  ];

  it("is read in whatever pieces it arrives", () => {
    for (let size = 1; size <= text.length; size += 1) {
      const reader = new EventStreamReader();
      const read = [];
      for (let at = 0; at < text.length; at += size) read.push(...reader.read(text.slice(at, at + size)));
      expect(read).toEqual(events);
    }
  });

  it("may end its lines with CR and LF", () => {
    expect(new EventStreamReader().read(text.replaceAll("\n", "\r\n"))).toEqual(events);
  });

  it("is given up when one event has no end", () => {
    expect(() => new EventStreamReader().read("x".repeat(maxPendingLength + 1))).toThrow(RangeError);
  });

  it("is opened again after a wait that doubles up to half a minute and differs between pages", () => {
    expect([0, 1, 2, 3].map((attempt) => reconnectDelayMs(attempt, 1))).toEqual([500, 1_000, 2_000, 4_000]);
    expect(reconnectDelayMs(0, 0)).toBe(250);
    expect(reconnectDelayMs(1_000, 1)).toBe(30_000);
    expect(reconnectDelayMs(1_000, 0)).toBe(15_000);
  });
});
