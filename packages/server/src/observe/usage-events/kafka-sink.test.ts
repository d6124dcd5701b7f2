import { execFile } from "node:child_process";
import { promisify } from "node:util";
import * as kafka from "@platformatic/kafka";
import { startMockKafka, type TestKafka } from "@sluice/test-servers";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { EventSink } from "./event-sink.ts";
import { createKafkaSink, type KafkaCompression } from "./kafka-sink.ts";
import { openSink } from "./open-sink.ts";
import { testEvent, testEvents } from "./testing/test-events.ts";
import { renderUsageEvent, type UsageEvent } from "./usage-event.ts";

const patient = (): AbortSignal => AbortSignal.timeout(60_000);
let server: TestKafka;
const open: EventSink[] = [];

beforeEach(async () => {
  server = await startMockKafka(2);
});
afterEach(async () => {
  for (const sink of open.splice(0)) await sink.close();
  await server.close();
});

function openSinkTo(broker: string, compression: KafkaCompression = "gzip"): EventSink {
  const cluster = { bootstrapBrokers: [broker], clientId: "test" };
  const sink = createKafkaSink({ kafka, cluster, topic: "usage.events", compression });
  open.push(sink);
  return sink;
}

const withSubject = (id: string, subject: string | undefined): UsageEvent => ({ ...testEvent(id), subject });

describe("usage events in Kafka", () => {
  it.each(["none", "gzip", "zstd"] as const)("are CloudEvents, keyed by subject, with compression %s", async (how) => {
    const sink = openSinkTo(server.broker, how);
    expect(sink).toMatchObject({ kind: "kafka", where: `usage.events on ${server.broker}` });
    const events = testEvents(100);
    await sink.send(events.slice(0, 60), patient());
    await sink.send(events.slice(60), patient());
    const records = await server.read("usage.events");
    expect(records.map(({ value }) => value)).toEqual(events.map(renderUsageEvent));
    expect(new Set(records.map(({ key }) => key))).toEqual(new Set(["acme"]));
    expect(records[0]?.headers).toEqual({ "content-type": "application/cloudevents+json; charset=UTF-8" });
  });

  it("fall back to the limit's subject as the key, and to none", async () => {
    const event = withSubject("e1", undefined);
    await openSinkTo(server.broker).send([event, { ...event, data: { ...event.data, key: "" } }], patient());
    const keys = (await server.read("usage.events")).map(({ key }) => key ?? "");
    expect(keys.toSorted()).toEqual(["", "u1"]);
  });

  it("are in the partitions that Java's client chooses for the same keys", async () => {
    const subjects = Array.from({ length: 40 }, (_, index) => `customer-${index}`);
    await openSinkTo(server.broker).send(
      subjects.map((subject) => withSubject(subject, subject)),
      patient(),
    );
    // librdkafka has Java's partitioner under the name murmur2_random.
    const args = ["-P", "-b", server.broker, "-t", "same", "-K", ":", "-X", "partitioner=murmur2_random"];
    const kcat = promisify(execFile)("kcat", args);
    kcat.child.stdin!.end(subjects.map((subject) => `${subject}:x\n`).join(""));
    await kcat;
    const places = async (topic: string): Promise<Record<string, number>> =>
      Object.fromEntries((await server.read(topic)).map(({ key, partition }) => [key, partition]));
    const ours = await places("usage.events");
    expect(new Set(Object.values(ours)).size).toBeGreaterThan(1);
    expect(ours).toEqual(await places("same"));
  });

  it("are not sent if brokers are gone, and the reason is given each time", async () => {
    const sink = openSinkTo(server.broker);
    await sink.send(testEvents(1), patient());
    await server.close();
    await expect(sink.send(testEvents(1, "lost"), patient())).rejects.toThrow(/ECONNREFUSED|closed/i);
    await expect(sink.send(testEvents(1, "lost"), patient())).rejects.toThrow(/ECONNREFUSED|closed/i);
  });

  it("are given up as soon as the signal says so, with its reason", async () => {
    const ended = new AbortController();
    // Nothing listens on this port, so that the client still tries.
    const sending = openSinkTo("127.0.0.1:1").send(testEvents(1), ended.signal);
    ended.abort(new Error("too late"));
    await expect(sending).rejects.toThrow("too late");
    await expect(openSinkTo("127.0.0.1:1").send(testEvents(1), ended.signal)).rejects.toThrow("too late");
  });
});

describe("the address of a Kafka sink", () => {
  const options = {
    counterServers: async () => undefined,
    kafka: async () => ({ kafka, cluster: { bootstrapBrokers: ["a:1"], clientId: "test" } }),
  };

  it("names a topic, and brokers by settings", async () => {
    for (const [url, where] of [
      ["kafka:", "usage.events on a:1"],
      ["kafka:?topic=other&compression=none", "other on a:1"],
    ] as const) {
      const sink = await openSink(url, options);
      open.push(sink);
      expect(sink.where).toBe(where);
    }
  });

  it.each(["kafka://ann:secret@a:1", "kafka:?topic=a/b", "kafka:?compression=best", "kafka:?acks=0"])(
    "is refused: %s",
    async (url) => {
      const error = await openSink(url, options).catch((thrown: unknown) => thrown as Error);
      expect(error).toMatchObject({ name: "SettingError", message: expect.stringContaining("SLUICE_USAGE_EVENTS") });
      expect((error as Error).message).not.toContain("secret");
    },
  );
});
