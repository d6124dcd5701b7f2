import { beforeEach, describe, expect, it } from "vitest";
import type { StoredGeneration } from "../documents/stored-generation.ts";
import { TopicPublisher } from "./topic-publisher.ts";

const createStored = (generation: number): StoredGeneration => ({
  ...{ generation, killSwitch: undefined, tokens: [] },
  rows: { policies: [], underway: [], subjects: [], subjectLimits: [] },
});

let nowMs: number;
let current: StoredGeneration | undefined;
let written: [generation: number, wentBack: boolean][];
let finish: ((isWritten: boolean) => void)[];
let topic: { connected: boolean; generation: number | undefined };
let publisher: TopicPublisher;

beforeEach(() => {
  [nowMs, current, written, finish] = [0, undefined, [], []];
  topic = { connected: true, generation: undefined };
  publisher = new TopicPublisher({
    topic: Object.assign(topic, {
      publish(stored: StoredGeneration, { wentBack = false } = {}): Promise<boolean> {
        written.push([stored.generation, wentBack]);
        return new Promise<boolean>((resolve) => finish.push(resolve)).then((isWritten) => {
          if (isWritten) topic.generation = stored.generation;
          return isWritten;
        });
      },
    }),
    read: () => current,
    steadyMs: () => nowMs,
    random: () => 0.5,
  });
});

async function finishOne(isWritten: boolean): Promise<void> {
  finish.shift()!(isWritten);
  await new Promise((resolve) => setImmediate(resolve));
}

/** 18 s, at a random number of a half. */
const waitMs = 18_000;

describe("a publisher to a topic", () => {
  it("writes a change of this node once it is applied, and no other node's", async () => {
    publisher.applied(createStored(3));
    expect(written).toEqual([]);
    publisher.changed(5);
    publisher.applied(createStored(4));
    expect(written).toEqual([]);
    publisher.applied(createStored(5));
    publisher.applied(createStored(6));
    expect(written).toEqual([[5, false]]);
    await finishOne(true);
    expect(written).toEqual([[5, false]]);
  });

  it("writes one at a time, and of those that wait only the last", async () => {
    for (const generation of [1, 2, 3]) {
      publisher.changed(generation);
      publisher.applied(createStored(generation));
    }
    expect(written).toEqual([[1, false]]);
    await finishOne(true);
    expect(written).toEqual([
      [1, false],
      [3, false],
    ]);
  });

  it("writes nothing that the topic already has", () => {
    topic.generation = 6;
    publisher.changed(5);
    publisher.applied(createStored(5));
    expect(written).toEqual([]);
  });

  it("corrects a topic that stays behind, again if that fails", async () => {
    current = createStored(4);
    publisher.check();
    nowMs += waitMs - 1;
    publisher.check();
    expect(written).toEqual([]);
    nowMs += 1;
    publisher.check();
    expect(written).toEqual([[4, false]]);
    await finishOne(false);
    publisher.check();
    nowMs += waitMs;
    publisher.check();
    expect(written).toHaveLength(2);
    await finishOne(true);
    nowMs += waitMs;
    publisher.check();
    nowMs += waitMs;
    publisher.check();
    expect(written).toHaveLength(2);
  });

  it("replaces newer generations if the store went back", () => {
    [current, topic.generation] = [createStored(4), 9];
    publisher.check();
    nowMs += waitMs;
    publisher.check();
    expect(written).toEqual([[4, true]]);
  });

  it("starts to wait anew when the topic caught up, or was lost, in between", () => {
    current = createStored(4);
    publisher.check();
    nowMs += waitMs;
    topic.connected = false;
    publisher.check();
    topic.connected = true;
    publisher.check();
    expect(written).toEqual([]);
  });

  it("does not correct it from a node that is not current, nor for an empty store", () => {
    for (const stored of [undefined, createStored(0)]) {
      current = stored;
      publisher.check();
      nowMs += waitMs;
      publisher.check();
    }
    expect(written).toEqual([]);
  });
});
