import * as kafka from "@platformatic/kafka";
import { parseRedisUrl } from "@sluice/redis";
import { openPolicyStore } from "@sluice/sql";
import { startMockKafka, startPostgres, startServer } from "@sluice/test-servers";
import { afterEach, describe, expect, it, vi } from "vitest";
import { createRecordingLog, type LoggedLine } from "../../testing/recording-log.ts";
import { PolicyTopic } from "../policy-topic/policy-topic.ts";
import { createKafkaPush } from "./kafka-push.ts";
import { choosePush } from "./open-push.ts";
import { createPostgresPush } from "./postgres-push.ts";
import { createProcessPush } from "./process-push.ts";
import { type Push, parseGeneration } from "./push.ts";
import { createRedisPush } from "./redis-push.ts";
import { putPolicy } from "./testing/store-changes.ts";

const patience = { timeout: 30_000, interval: 20 };
const log = createRecordingLog(() => undefined);
const open: { close(): unknown }[] = [];
afterEach(async () => {
  for (const one of open.splice(0).reverse()) await one.close();
});

function listenTo(push: Push): (number | undefined)[] {
  const heard: (number | undefined)[] = [];
  open.push(push);
  push.listen((generation) => void heard.push(generation));
  return heard;
}

describe("a push message", () => {
  it.each([
    ["12", 12],
    ["0", 0],
    ["", undefined],
    ["-1", undefined],
    ["1e3", undefined],
    ["9999999999999999", undefined],
    ["DROP TABLE", undefined],
  ])("%j is %j", (message, generation) => expect(parseGeneration(message)).toBe(generation));
});

describe("a push", () => {
  it("within a process reaches every part that has the same store open", () => {
    const [one, two, other] = [createProcessPush("a"), createProcessPush("a"), createProcessPush("b")];
    const heard = [one, two, other].map(listenTo);
    one.announce(3);
    expect(heard).toEqual([[3], [3], []]);
    two.close();
    one.announce(4);
    expect(heard).toEqual([[3, 4], [3], []]);
  });

  it("by Valkey reaches other nodes, and connecting triggers a look", async () => {
    const server = await startServer({ flavor: "valkey" });
    open.push(server);
    const [one, two] = [1, 2].map(() => createRedisPush(parseRedisUrl(server.url), "s", log));
    const heard = [one!, two!].map(listenTo);
    await vi.waitFor(() => expect(heard).toEqual([[undefined], [undefined]]), patience);
    one!.announce(3);
    await vi.waitFor(
      () =>
        expect(heard).toEqual([
          [undefined, 3],
          [undefined, 3],
        ]),
      patience,
    );
    await server.command("PUBLISH", "s:generation", "rubbish");
    await vi.waitFor(() => expect(heard[0]).toEqual([undefined, 3, undefined]), patience);
  });

  it("by PostgreSQL is part of each change, and comes back with the server", async () => {
    const server = await startPostgres();
    open.push(server);
    const store = await openPolicyStore({ url: server.url });
    open.push(store);
    const push = createPostgresPush({ url: server.url }, { where: store.where, log });
    const heard = listenTo(push);
    await vi.waitFor(() => expect(heard).toEqual([undefined]), patience);
    await putPolicy(store, "p", 1);
    await vi.waitFor(() => expect(heard).toEqual([undefined, 1]), patience);
    await server.stop("SIGKILL");
    await server.start();
    await vi.waitFor(() => expect(heard).toEqual([undefined, 1, undefined]), patience);
    await vi.waitFor(() => putPolicy(store, "p", 2), patience);
    await vi.waitFor(() => expect(heard.at(-1)).toBe(2), patience);
  }, 60_000);
});

describe("a push by Kafka", () => {
  function openTopic(broker: string, lines: LoggedLine[] = []): Push {
    const recording = createRecordingLog((line) => void lines.push(line));
    const cluster = { bootstrapBrokers: [broker], clientId: "test" };
    const topic = new PolicyTopic({ kafka, cluster, topic: "t", store: "here", log: recording, maxWaitMs: 100 });
    open.push(topic);
    return createKafkaPush(topic, recording);
  }

  it("reaches every node, and connecting triggers a look", async () => {
    const server = await startMockKafka();
    open.push(server);
    const [one, two] = [openTopic(server.broker), openTopic(server.broker)];
    const heard = [one, two].map(listenTo);
    await vi.waitFor(() => expect(heard).toEqual([[undefined], [undefined]]), patience);
    one.announce(3);
    await vi.waitFor(() => expect(heard.map((all) => all.at(-1))).toEqual([3, 3]), patience);
    expect([one.kind, one.connected]).toEqual(["kafka", true]);
  });

  it("logs once that brokers are lost, and never throws", async () => {
    const server = await startMockKafka();
    open.push(server);
    const lines: LoggedLine[] = [];
    const push = openTopic(server.broker, lines);
    const heard = listenTo(push);
    await vi.waitFor(() => expect(heard).toEqual([undefined]), patience);
    await server.close();
    await vi.waitFor(() => expect(push.connected).toBe(false), patience);
    push.announce(4);
    const failed = (): readonly string[] => lines.filter(({ level }) => level === "warn").map(({ event }) => event!);
    await vi.waitFor(() => expect(failed().toSorted()).toEqual(["push.lost", "push.publish_failed"]), patience);
    expect(heard).toEqual([undefined]);
  });
});

describe("the chosen push", () => {
  it.each([
    ["auto", "postgres", "memory", "postgres"],
    ["auto", "postgres", "redis", "postgres"],
    ["auto", "sqlite", "redis", "redis"],
    ["auto", "sqlite", "memory", "process"],
    ["redis", "postgres", "redis", "redis"],
    ["none", "postgres", "redis", "none"],
    ["kafka", "postgres", "redis", "kafka"],
    ["kafka", "sqlite", "memory", "kafka"],
  ] as const)("for %s with a store in %s and counters in %s is %s", (wanted, store, counters, kind) =>
    expect(choosePush(wanted, store, counters)).toBe(kind),
  );

  it("is refused if there is no server for it", () => {
    expect(() => choosePush("postgres", "sqlite", "redis")).toThrow("SLUICE_PUSH");
    expect(() => choosePush("redis", "postgres", "memory")).toThrow("SLUICE_REDIS_URL");
  });
});
