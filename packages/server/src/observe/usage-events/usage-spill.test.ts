import { appendFile, type FileHandle, mkdtemp, open as openFile, readdir, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { createRecordingLog, type LoggedLine } from "../../testing/recording-log.ts";
import { createRecordingSink, testEvent, testEvents } from "./testing/test-events.ts";
import type { UsageEvent } from "./usage-event.ts";
import { UsageSpill } from "./usage-spill.ts";
import { UsageStream } from "./usage-stream.ts";

let folder: string;
let path: string;
let logged: LoggedLine[];
let opened: UsageSpill[];
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "sluice-spill-"));
  path = join(folder, "spill");
  logged = [];
  opened = [];
});
afterEach(async () => {
  for (const spill of opened) await spill.close();
  await rm(folder, { recursive: true, force: true });
});

const log = createRecordingLog((line) => logged.push(line));
const always = (): boolean => true;
const never = (): Promise<never> => Promise.reject(new Error("it should not wait"));

async function open({ maxBytes = 1e6, copies = 1 } = {}) {
  const written: UsageEvent[] = [];
  const spill = await UsageSpill.open({ path, maxBytes, copies, log, onWritten: (event) => written.push(event) });
  opened.push(spill);
  return { spill, written };
}

const ids = (events: readonly UsageEvent[]): readonly string[] => events.map(({ id }) => id);

describe("the spill file of events", () => {
  it("has every event before it is sent", async () => {
    const { spill, written } = await open();
    for (const event of testEvents(3)) spill.add(event);
    expect(written).toEqual([]);
    await spill.written();
    expect(ids(written)).toEqual(["e0", "e1", "e2"]);
    expect((await readFile(`${path}.000001`, "utf8")).split("\n")).toHaveLength(4);
  });

  it("gives back what no sink had when the process ended, without the line that was cut off", async () => {
    const { spill } = await open({ copies: 2 });
    for (const event of testEvents(5)) spill.add(event);
    await spill.written();
    // Nothing more is called: the process is gone.
    await appendFile(`${path}.000001`, '{"specversion":"1.0","id":"torn');
    const next = await open({ copies: 2 });
    expect(next.spill.stats.bytes).toBeGreaterThan(0);
    await next.spill.replay(always, never);
    expect(ids(next.written)).toEqual(["e0", "e1", "e2", "e3", "e4"]);
    expect(logged).toMatchObject([{ event: "usage_events.replayed", fields: { events: 5, spoiled: 1 } }]);
    // One of two sinks is not enough.
    for (const event of next.written) next.spill.settle(event);
    expect(await readdir(folder)).toContain("spill.000001");
    for (const event of next.written) next.spill.settle(event);
    await expect.poll(() => readdir(folder)).toEqual(["spill.000002"]);
    expect(next.spill.stats).toEqual({ bytes: 0, unkept: 0, replayed: 5 });
    await next.spill.close();
    expect(await readdir(folder)).toEqual([]);
  });

  it("keeps what is left when the server stops, for the next start", async () => {
    const { spill, written } = await open();
    for (const event of testEvents(3)) spill.add(event);
    await spill.written();
    spill.settle(written[0]!);
    await spill.close();
    const next = await open();
    await next.spill.replay(always, never);
    // Events are kept by segments: one that arrived may be repeated.
    expect(ids(next.written)).toEqual(["e0", "e1", "e2"]);
  });

  it("keeps what a stop leaves in a queue, and what comes while the queue closes", async () => {
    const sink = createRecordingSink();
    sink.before = () => Promise.reject(new Error("down"));
    const stream = await UsageStream.open({ sinks: [sink], maxEvents: 1_000, spill: { path, maxBytes: 1e6 }, log });
    for (const event of testEvents(3)) stream.publish(event);
    await expect.poll(() => stream.read().sinks[0]!.waiting).toBe(3);
    const closing = stream.close(100);
    stream.publish(testEvent("late"));
    await closing;
    const next = await open();
    await next.spill.replay(always, never);
    expect(ids(next.written)).toEqual(["e0", "e1", "e2", "late"]);
  });

  it("loses no other event to a line that was written halfway", async () => {
    const { spill } = await open();
    spill.add(testEvent("before"));
    await spill.written();
    const file = await openFile(join(folder, "another"), "w");
    await file.close();
    const files = Object.getPrototypeOf(file) as { write: (text: Buffer) => ReturnType<FileHandle["write"]> };
    const { write } = files;
    const half = vi.spyOn(files, "write").mockImplementationOnce(function (this: FileHandle, text) {
      return write.call(this, text.subarray(0, 20));
    });
    spill.add(testEvent("torn"));
    await spill.written();
    half.mockRestore();
    expect(spill.stats.unkept).toBe(1);
    spill.add(testEvent("after"));
    await spill.written();
    // Nothing more is called: the process is gone.
    const next = await open();
    await next.spill.replay(always, never);
    expect(ids(next.written)).toEqual(["before", "after"]);
  });

  it("is empty again when everything has arrived, without another file", async () => {
    const { spill, written } = await open();
    for (let round = 0; round < 3; round++) {
      for (const event of testEvents(2, `round ${round}: `)) spill.add(event);
      await spill.written();
      for (const event of written.splice(0)) spill.settle(event);
      await spill.written();
      expect(spill.stats.bytes).toBe(0);
      expect(await readFile(`${path}.000001`, "utf8")).toBe("");
    }
  });

  it("begins other segments, deletes those that are done, and never exceeds its bound", async () => {
    const maxBytes = 20_000;
    const { spill, written } = await open({ maxBytes });
    for (let i = 0; i < 200; i++) {
      spill.add(testEvent(`e${i}`));
      await spill.written();
      expect(spill.stats.bytes).toBeLessThanOrEqual(maxBytes);
    }
    expect(written).toHaveLength(200);
    expect(spill.stats.unkept).toBeGreaterThan(0);
    expect(logged.map(({ event }) => event)).toEqual(["usage_events.spill_failed"]);
    expect((await readdir(folder)).length).toBeGreaterThan(4);
    for (const event of written) spill.settle(event);
    await spill.written();
    expect(spill.stats.bytes).toBe(0);
    await expect.poll(async () => (await readdir(folder)).length).toBe(1);
    spill.add(testEvent("fits again"));
    await spill.written();
    expect(spill.stats.bytes).toBeGreaterThan(0);
  });

  it("reads back no faster than there is room", async () => {
    const { spill } = await open();
    for (const event of testEvents(10)) spill.add(event);
    await spill.written();
    const next = await open();
    let room = 4;
    let waits = 0;
    const hasRoom = (): boolean => next.written.length < room;
    await next.spill.replay(hasRoom, async () => {
      waits += 1;
      expect(next.written).toHaveLength(room);
      room += 4;
    });
    expect(waits).toBe(2);
    expect(next.written).toHaveLength(10);
  });
});
