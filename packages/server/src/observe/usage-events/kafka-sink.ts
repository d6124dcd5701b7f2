import { type KafkaCluster, renderCluster } from "../../kafka/kafka-cluster.ts";
import type { Kafka } from "../../kafka/load-kafka.ts";
import { hasKafkaCode, renderKafkaError } from "../../kafka/render-kafka-error.ts";
import { type EventSink, EventsRefused } from "./event-sink.ts";
import { renderUsageEvent, type UsageEvent } from "./usage-event.ts";

export const kafkaCompressions = ["none", "gzip", "zstd"] as const;
export type KafkaCompression = (typeof kafkaCompressions)[number];

export interface KafkaSinkOptions {
  readonly kafka: Kafka;
  readonly cluster: KafkaCluster;
  readonly topic: string;
  readonly compression: KafkaCompression;
}

type Producer = InstanceType<Kafka["Producer"]>;

/** What a broker answers to a message that it will never accept. */
const tooLarge = ["MESSAGE_TOO_LARGE", "RECORD_LIST_TOO_LARGE"] as const;

/**
 * Writes each event as a record: a CloudEvent in structured mode, with its subject as the key, so that a subject's events are
 * in one partition, the one that Java's client chooses. It waits for all replicas in sync. Producers are idempotent if the
 * brokers permit it: what the client repeats by itself is stored once. A batch that this sink has to give up may be stored all
 * the same, and again when the queue repeats it.
 */
export function createKafkaSink({ kafka, cluster, topic, compression }: KafkaSinkOptions): EventSink {
  let producer: Promise<Producer> | undefined;

  async function connect(): Promise<Producer> {
    const idempotent = createProducer(true);
    try {
      // -1: this producer is new. The client's own default is the id of another one.
      await idempotent.initIdempotentProducer({ producerId: -1n, producerEpoch: -1 });
      return idempotent;
    } catch (error) {
      void idempotent.close(true).catch(() => undefined);
      if (!isNotPermitted(error)) throw error;
      return createProducer(false);
    }
  }

  function createProducer(idempotent: boolean): Producer {
    return new kafka.Producer({
      ...cluster,
      idempotent,
      // Few: the queue has the deadline of a send, and repeats it.
      ...{ retries: 3, retryDelay: 250, connectTimeout: 5_000, requestTimeout: 10_000 },
      // Brokers create the topic if they are configured to.
      autocreateTopics: true,
      partitioner: kafka.compatibilityPartitioner,
    });
  }

  /** Ends the connections, and with them whatever was in flight. */
  async function disconnect(): Promise<void> {
    const old = producer;
    producer = undefined;
    await old?.then((one) => one.close(true)).catch(() => undefined);
  }

  async function write(events: readonly UsageEvent[], signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    producer ??= connect();
    try {
      const open = await producer;
      await open.send({ messages: events.map((event) => encode(topic, event)), acks: -1, compression });
    } catch (error) {
      if (!hasKafkaCode(error, ...tooLarge)) throw error;
      if (events.length === 1) throw new EventsRefused(renderKafkaError(error));
      const half = Math.ceil(events.length / 2);
      await write(events.slice(0, half), signal);
      await write(events.slice(half), signal);
    }
  }

  return {
    kind: "kafka",
    where: `${topic} on ${renderCluster(cluster)}`,
    async send(events, signal): Promise<void> {
      try {
        await untilAborted(write(events, signal), signal);
      } catch (error) {
        if (error instanceof EventsRefused) throw error;
        // A new connection starts without what this one still tries to send.
        void disconnect();
        throw signal.aborted ? signal.reason : new Error(renderKafkaError(error));
      }
    },
    close: disconnect,
  };
}

function encode(
  topic: string,
  event: UsageEvent,
): { topic: string; key?: Buffer; value: Buffer; headers: Map<Buffer, Buffer> } {
  const key = event.subject ?? event.data.key;
  return {
    topic,
    ...(key === "" ? undefined : { key: Buffer.from(key) }),
    value: Buffer.from(renderUsageEvent(event)),
    headers: new Map([[contentType, cloudEvent]]),
  };
}

const contentType = Buffer.from("content-type");
const cloudEvent = Buffer.from("application/cloudevents+json; charset=UTF-8");

/** Brokers without idempotent producers, or whose rules forbid them to this client. */
function isNotPermitted(error: unknown): boolean {
  return (
    hasKafkaCode(error, "CLUSTER_AUTHORIZATION_FAILED", "UNSUPPORTED_VERSION") ||
    /Unsupported API InitProducerId/.test(renderKafkaError(error))
  );
}

function untilAborted<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const onAbort = (): void => reject(signal.reason as Error);
    signal.addEventListener("abort", onAbort, { once: true });
    work.then(resolve, reject).finally(() => signal.removeEventListener("abort", onAbort));
  });
}
