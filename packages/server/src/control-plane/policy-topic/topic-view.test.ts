import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { StoredGeneration } from "../documents/stored-generation.ts";
import {
  announcedKey,
  chunkKey,
  decodeGeneration,
  encodeGeneration,
  markStore,
  maxChunks,
  type Publication,
  parseTopicKey,
  type TopicRecord,
} from "./generation-records.ts";
import { TopicView } from "./topic-view.ts";

const mark = markStore("postgres://db/sluice");

function createStored(generation: number, bytes = 200): StoredGeneration {
  // Digits that do not compress well, the same for each generation.
  const text = Array.from({ length: bytes }, (_, index) => ((index * 7919 + generation * 104_729) % 997).toString(36));
  const subjects = [{ dimension: "user", value: text.join(""), tier: undefined, changedMs: 1 }];
  const rows = { policies: [], underway: [], subjects, subjectLimits: [] };
  return { generation, killSwitch: undefined, rows: rows as never, tokens: [] };
}

/** A small chunk size makes several chunks of a small generation. */
const publish = (generation: number): Promise<Publication> => encodeGeneration(mark, createStored(generation), 64);

function createView(records: readonly TopicRecord[]): TopicView {
  const view = new TopicView(mark);
  for (const record of records) view.take(record);
  return view;
}

/** What a broker keeps of each key: the last record, at its place. */
function compact(records: readonly TopicRecord[]): readonly TopicRecord[] {
  const last = new Map(records.map(({ key }, index) => [key, index]));
  return records.filter(({ key }, index) => last.get(key) === index);
}

describe("the keys of a policy topic", () => {
  it("are read as they are written", () => {
    const chunk = { generation: 12, digest: "0".repeat(32), index: 3, count: 64 };
    expect(parseTopicKey(mark, chunkKey(mark, chunk))).toEqual({ kind: "chunk", ...chunk });
    expect(parseTopicKey(mark, announcedKey(mark))).toEqual({ kind: "generation" });
  });

  it.each([
    ["another store's", announcedKey(markStore("sqlite:x"))],
    ["a chunk beyond the last", chunkKey(mark, { generation: 1, digest: "0".repeat(32), index: 2, count: 2 })],
    ["too many chunks", chunkKey(mark, { generation: 1, digest: "0".repeat(32), index: 0, count: maxChunks + 1 })],
    ["another program's", `${mark}/else`],
    ["an empty one", ""],
  ])("are ignored: %s", (_what, key) => expect(parseTopicKey(mark, key)).toBeUndefined());
});

describe("a generation in a topic", () => {
  it("comes back as it was, in however many chunks", async () => {
    for (const bytesPerChunk of [32, 64, 1_000, 1_000_000]) {
      const stored = createStored(7);
      const { records, generation } = await encodeGeneration(mark, stored, bytesPerChunk);
      expect(records.every(({ value }) => value!.length <= bytesPerChunk)).toBe(true);
      const { newest } = createView(records);
      expect(newest?.generation).toBe(generation);
      expect(await decodeGeneration(newest!.bytes, 7)).toEqual(JSON.parse(JSON.stringify(stored)));
    }
  });

  it("is refused if it is too large, or not what its key says", async () => {
    await expect(encodeGeneration(mark, createStored(7, 5_000), 16)).rejects.toThrow("fit");
    const { newest } = createView((await publish(7)).records);
    await expect(decodeGeneration(newest!.bytes, 8)).rejects.toThrow("its key");
    await expect(decodeGeneration(Buffer.from("{}"), 8)).rejects.toThrow();
  });

  it("is not there before its last chunk, nor with a chunk that is not its own", async () => {
    const { records } = await publish(7);
    expect(records.length).toBeGreaterThan(2);
    const view = new TopicView(mark);
    for (const record of records.slice(1)) expect(view.take(record)).toBeUndefined();
    expect(view.take({ ...records[0]!, value: Buffer.from("forged") })).toBeUndefined();
    expect(view.newest).toBeUndefined();
    expect(view.take(records[0]!)).toBe("generation");
    expect(view.newest?.generation).toBe(7);
  });

  it("replaces older ones, and newer ones only if the store went back", async () => {
    const [six, seven] = [await publish(6), await publish(7)];
    const view = createView([...six.records, ...seven.records]);
    expect(view.superseded(seven, false).map(({ key }) => key)).toEqual(six.records.map(({ key }) => key));
    expect(view.superseded(six, false)).toEqual([]);
    for (const record of view.superseded(six, true)) view.take(record);
    expect(view.newest?.generation).toBe(6);
  });

  it("is announced before it is there", () => {
    const view = new TopicView(mark);
    expect(view.take({ key: announcedKey(mark), value: Buffer.from("12") })).toBe("announcement");
    expect(view.announced).toBe(12);
    expect(view.take({ key: announcedKey(mark), value: Buffer.from("rubbish") })).toBeUndefined();
  });

  it("holds a bounded number of generations, and keeps the newest complete one", async () => {
    const complete = await publish(50);
    const halves = await Promise.all(Array.from({ length: 40 }, (_, index) => publish(index + 30)));
    const view = createView([...complete.records, ...halves.flatMap(({ records }) => records.slice(1))]);
    expect(view.newest?.generation).toBe(50);
    expect(view.superseded({ generation: 99, digest: "" }, false).length).toBeLessThan(8 * complete.records.length);
  });
});

describe("a policy topic, whatever nodes write to it", () => {
  /** Writers that interleave, stop halfway, write again, and delete what they replace. */
  const steps = fc.array(
    fc.record({
      generation: fc.integer({ min: 1, max: 5 }),
      chunks: fc.oneof(fc.constant(99), fc.integer({ min: 0, max: 6 })),
      deletes: fc.boolean(),
    }),
    { maxLength: 12 },
  );

  async function play(plan: readonly { generation: number; chunks: number; deletes: boolean }[], order: number) {
    const log: TopicRecord[] = [];
    const view = new TopicView(mark);
    const finished: number[] = [];
    const write = (record: TopicRecord): void => {
      log.push(record);
      view.take(record);
    };
    for (const [step, { generation, chunks, deletes }] of plan.entries()) {
      const publication = await publish(generation);
      const { records } = publication;
      // Some writers begin in the middle, as two that interleave do.
      const turned = records.map((_, index) => records[(index + step * order) % records.length]!);
      const isWhole = chunks >= records.length;
      for (const record of turned.slice(0, chunks)) write(record);
      if (!isWhole) continue;
      finished.push(generation);
      if (deletes) for (const record of view.superseded(publication, false)) write(record);
    }
    return { log, view, finished };
  }

  it("shows the newest generation that was finished, and never half of one", async () => {
    await fc.assert(
      fc.asyncProperty(steps, fc.integer({ min: 0, max: 3 }), async (plan, order) => {
        const { view, finished } = await play(plan, order);
        const newest = view.newest;
        // Halves of the same generation may add up to a whole one.
        expect(newest?.generation ?? 0).toBeGreaterThanOrEqual(Math.max(0, ...finished));
        if (newest !== undefined)
          expect((await decodeGeneration(newest.bytes, newest.generation)).generation).toBe(newest.generation);
      }),
    );
  });

  it("shows the same after any part of it was compacted", async () => {
    await fc.assert(
      fc.asyncProperty(steps, fc.integer({ min: 0, max: 3 }), fc.nat(), async (plan, order, cut) => {
        const { log, view } = await play(plan, order);
        const place = log.length === 0 ? 0 : cut % log.length;
        for (const compacted of [compact(log), [...compact(log.slice(0, place)), ...log.slice(place)]]) {
          expect(createView(compacted).newest?.generation).toBe(view.newest?.generation);
          // Deletions are dropped in the end.
          const dropped = compact(compacted).filter(({ value }) => value !== undefined);
          expect(createView(dropped).newest?.generation).toBe(view.newest?.generation);
        }
      }),
    );
  });
});
