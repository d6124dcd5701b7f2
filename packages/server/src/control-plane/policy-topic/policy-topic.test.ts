import { randomBytes } from "node:crypto";
import * as kafka from "@platformatic/kafka";
import { startMockKafka, type TestKafka } from "@sluice/test-servers";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { createRecordingLog, type LoggedLine } from "../../testing/recording-log.ts";
import type { StoredGeneration } from "../documents/stored-generation.ts";
import { chunkBytes, chunkKey, digestBytes, markStore } from "./generation-records.ts";
import { PolicyTopic } from "./policy-topic.ts";

const patience = { timeout: 30_000, interval: 20 };
let server: TestKafka;
let lines: LoggedLine[];
const open: PolicyTopic[] = [];

beforeEach(async () => {
  server = await startMockKafka();
  lines = [];
});
afterEach(async () => {
  await Promise.all(open.splice(0).map((topic) => topic.close()));
  await server.close();
});

function openTopic(store = "here", topic = "policies"): PolicyTopic {
  const log = createRecordingLog((line) => void lines.push(line));
  const cluster = { bootstrapBrokers: [server.broker], clientId: "test" };
  const opened = new PolicyTopic({ kafka, cluster, topic, store, log, maxWaitMs: 100 });
  open.push(opened);
  return opened;
}

/** `bytes` of it do not compress. */
function createStored(generation: number, bytes = 0): StoredGeneration {
  const subjects = [{ dimension: "user", value: randomBytes(bytes).toString("base64"), tier: "gold" }];
  const rows = { policies: [], underway: [], subjects, subjectLimits: [] };
  return { generation, killSwitch: undefined, rows: rows as never, tokens: [] };
}

describe("a policy topic", () => {
  it("gives the newest generation to a node that starts, and deletes the older ones", async () => {
    const writer = openTopic();
    expect(await writer.recall(30_000)).toBeUndefined();
    for (const generation of [1, 2]) {
      expect(await writer.publish(createStored(generation))).toBe(true);
      await vi.waitFor(() => expect(writer.generation).toBe(generation), patience);
    }
    expect(await openTopic().recall(30_000)).toMatchObject({ generation: 2 });
    const records = await server.read("policies");
    const prefix = `${markStore("here")}/policies/`;
    const latest = new Map(records.map(({ key, value }) => [key, value]));
    expect([...latest].filter(([, value]) => value !== undefined).map(([key]) => key)).toEqual([
      expect.stringContaining(`${prefix}2/`),
    ]);
    expect(new Set(records.map(({ partition }) => partition))).toEqual(new Set([0]));
    expect(writer.stats).toEqual({ published: 2, failed: 0 });
  });

  it("carries a generation that is larger than a message may be", async () => {
    const stored = createStored(7, 3 * chunkBytes);
    const [writer, reader] = [openTopic(), openTopic()];
    expect(await writer.publish(stored)).toBe(true);
    await vi.waitFor(() => expect(reader.generation).toBe(7), patience);
    expect(await reader.read()).toEqual(JSON.parse(JSON.stringify(stored)));
    expect((await server.read("policies")).length).toBeGreaterThan(3);
  });

  it("is shared by stores that do not see each other's generations", async () => {
    const [here, there] = [openTopic("here"), openTopic("there")];
    await here.publish(createStored(7));
    await there.publish(createStored(3));
    await vi.waitFor(() => expect([here.generation, there.generation]).toEqual([7, 3]), patience);
    expect(await openTopic("elsewhere").recall(30_000)).toBeUndefined();
  });

  it("keeps what it has read while the brokers are gone", async () => {
    const topic = openTopic();
    await topic.publish(createStored(7));
    await vi.waitFor(() => expect(topic.generation).toBe(7), patience);
    await server.close();
    await vi.waitFor(() => expect(topic.connected).toBe(false), patience);
    expect(await topic.recall(1)).toMatchObject({ generation: 7 });
  });

  it("does not wait for brokers that do not answer longer than it is told", async () => {
    await server.close();
    expect(await openTopic().recall(1)).toBeUndefined();
  });

  it("reports a generation that cannot be used, once", async () => {
    const producer = new kafka.Producer({ bootstrapBrokers: [server.broker], clientId: "other" });
    const topic = openTopic();
    try {
      const value = Buffer.from("not compressed");
      const key = chunkKey(markStore("here"), { generation: 7, digest: digestBytes(value), index: 0, count: 1 });
      const message = { topic: "policies", partition: 0, key: Buffer.from(key), value };
      await producer.send({ messages: [message], acks: -1 });
    } finally {
      await producer.close();
    }
    await vi.waitFor(() => expect(topic.generation).toBe(7), patience);
    expect([await topic.read(), await topic.read()]).toEqual([undefined, undefined]);
    expect(lines.filter(({ level }) => level === "error").map(({ event }) => event)).toEqual([
      "push.generation_unusable",
    ]);
  });
});
