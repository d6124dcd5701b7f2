import { appendFile, mkdtemp, readdir, readFile, rm, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { createFileSink } from "./file-sink.ts";
import { testEvent, testEvents } from "./testing/test-events.ts";
import { renderUsageEvent } from "./usage-event.ts";

let folder: string;
let path: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "sluice-events-"));
  path = join(folder, "usage.jsonl");
});
afterEach(() => rm(folder, { recursive: true, force: true }));

const { signal } = new AbortController();

async function readIds(file: string): Promise<readonly string[]> {
  const lines = (await readFile(file, "utf8")).trimEnd().split("\n");
  return lines.map((line) => (JSON.parse(line) as { id: string }).id);
}

describe("a file of events", () => {
  it("has one event a line, and is readable by its owner alone", async () => {
    const sink = createFileSink({ path, maxBytes: 1e9, keep: 1 });
    await sink.send(testEvents(3), signal);
    await sink.send([testEvent("last")], signal);
    expect(await readIds(path)).toEqual(["e0", "e1", "e2", "last"]);
    expect((await stat(path)).mode & 0o777).toBe(0o600);
  });

  it("is renamed when it is full, and the oldest is deleted", async () => {
    const size = renderUsageEvent(testEvent("e0")).length + 1;
    const sink = createFileSink({ path, maxBytes: 3 * size, keep: 2 });
    for (const event of testEvents(10)) await sink.send([event], signal);
    expect((await readdir(folder)).sort()).toEqual(["usage.jsonl", "usage.jsonl.1", "usage.jsonl.2"]);
    expect(await readIds(path)).toEqual(["e9"]);
    expect(await readIds(`${path}.1`)).toEqual(["e6", "e7", "e8"]);
    expect(await readIds(`${path}.2`)).toEqual(["e3", "e4", "e5"]);
    for (const name of await readdir(folder))
      expect((await stat(join(folder, name))).size).toBeLessThanOrEqual(3 * size);
  });

  it("ends a line that was cut off before it writes the next", async () => {
    const sink = createFileSink({ path, maxBytes: 1e9, keep: 1 });
    await sink.send(testEvents(1), signal);
    await appendFile(path, '{"specversion":"1.');
    await sink.send([testEvent("next")], signal);
    const lines = (await readFile(path, "utf8")).split("\n");
    expect(lines[1]).toBe('{"specversion":"1.');
    expect(JSON.parse(lines[2]!)).toMatchObject({ id: "next" });
  });

  it("goes on in a new file if another program took it away", async () => {
    const sink = createFileSink({ path, maxBytes: 1e9, keep: 1 });
    await sink.send(testEvents(1), signal);
    await rm(path);
    await sink.send([testEvent("next")], signal);
    expect(await readIds(path)).toEqual(["next"]);
  });
});
