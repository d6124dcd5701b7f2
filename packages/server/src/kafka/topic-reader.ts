import { setTimeout as pause } from "node:timers/promises";
import type { Consumer } from "@platformatic/kafka";
import type { KafkaCluster } from "./kafka-cluster.ts";
import type { Kafka } from "./load-kafka.ts";
import { hasKafkaCode, isUnknownTopic, renderKafkaError } from "./render-kafka-error.ts";

export interface TopicReaderOptions {
  readonly kafka: Kafka;
  readonly cluster: KafkaCluster;
  readonly topic: string;
  /** Called when the topic is missing. Resolves when it has been created, or rejects with the reason. */
  readonly create: () => Promise<void>;
  /** Called with each record in the topic's order. Undefined: the key is deleted. */
  readonly onRecord: (key: string, value: Buffer | undefined) => void;
  /** Everything read before is void: the topic is another one, or lost its end. It is read again from its start. */
  readonly onReset: () => void;
  /** Everything in the topic was read. Called for each time that this becomes true again after an outage. */
  readonly onCaughtUp: () => void;
  /** Called with each failed attempt. */
  readonly onLost: (reason: string) => void;
  /** How long a broker may keep a request that finds nothing new. */
  readonly maxWaitMs?: number | undefined;
}

/** Nodes write to and read from one partition: the order of records is what makes a generation newer. */
export const policyPartition = 0;

const earliest = -2n;
const maxBytes = 4 * 1024 * 1024;
const controlBatch = 0b10_0000;
const backoffMs = { first: 100, most: 2_000 } as const;
/** A broker that restarted has forgotten what it was asked for; the client asks for everything next time. */
const forgottenSession = ["FETCH_SESSION_ID_NOT_FOUND", "INVALID_FETCH_SESSION_EPOCH", "FETCH_SESSION_TOPIC_ID_ERROR"];

/**
 * Reads a topic from its start and follows it for ever, without a consumer group: every reader sees every record, and
 * the brokers keep no state of it.
 *
 *     finding ──found──► reading ──reached the end──► following
 *        ▲                  │                            │
 *        └──after a moment──┴───────lost the broker──────┘
 */
export class TopicReader {
  readonly #options: TopicReaderOptions;
  readonly #consumer: Consumer;
  readonly #ended = new AbortController();
  #topicId: string | undefined;
  #offset = 0n;
  #isFollowing = false;

  constructor(options: TopicReaderOptions) {
    const { kafka, cluster } = options;
    this.#options = options;
    this.#consumer = new kafka.Consumer({
      ...cluster,
      // The class demands a name; no group of that name is ever joined.
      groupId: `${cluster.clientId}-reads-alone`,
      // This reader repeats by itself, with the place that it has reached.
      retries: 0,
      connectTimeout: 5_000,
      requestTimeout: 15_000,
      autocreateTopics: false,
    });
    void this.#run();
  }

  /** Whether the end of the topic was reached, and the brokers answer. */
  get isFollowing(): boolean {
    return this.#isFollowing;
  }

  async close(): Promise<void> {
    this.#ended.abort();
    await this.#consumer.close(true).catch(() => undefined);
  }

  async #run(): Promise<void> {
    let failures = 0;
    while (!this.#closed) {
      try {
        const leader = await this.#find();
        while (!this.#closed) {
          await this.#fetch(leader);
          failures = 0;
        }
      } catch (error) {
        if (this.#closed) return;
        this.#isFollowing = false;
        this.#options.onLost(renderKafkaError(error));
        const waitMs = Math.min(backoffMs.most, backoffMs.first * 2 ** failures);
        failures = Math.min(failures + 1, 10);
        await pause(waitMs * (0.5 + Math.random() / 2), undefined, { signal: this.#ended.signal }).catch(
          () => undefined,
        );
      }
    }
  }

  get #closed(): boolean {
    return this.#ended.signal.aborted;
  }

  /** The broker that leads the partition. Creates a missing topic. */
  async #find(): Promise<number> {
    const { topic, create } = this.#options;
    const look = () => this.#consumer.metadata({ topics: [topic], forceUpdate: true, autocreateTopics: false });
    const metadata = await look().catch(async (error: unknown) => {
      if (!isUnknownTopic(error)) throw error;
      await create();
      return look();
    });
    const found = metadata.topics.get(topic);
    const leader = found?.partitions[policyPartition]?.leader;
    if (found === undefined || leader === undefined || leader < 0)
      throw new Error(`the topic ${topic} has no leader at the moment`);
    if (this.#topicId !== found.id) this.#restart(0n);
    this.#topicId = found.id;
    return leader;
  }

  async #fetch(leader: number): Promise<void> {
    const { maxWaitMs = 5_000 } = this.#options;
    const partition = {
      ...{ partition: policyPartition, currentLeaderEpoch: -1, lastFetchedEpoch: -1 },
      ...{ fetchOffset: this.#offset, partitionMaxBytes: maxBytes },
    };
    const request = {
      ...{ node: leader, minBytes: 1, maxBytes, maxWaitTime: maxWaitMs },
      topics: [{ topicId: this.#topicId!, partitions: [partition] }],
    };
    try {
      const { responses } = await this.#consumer.fetch(request);
      const answer = responses[0]?.partitions[0];
      for (const batch of answer?.records ?? []) this.#take(batch);
      // A broker that has nothing new answers without partitions.
      if (answer === undefined || this.#offset >= answer.highWatermark) this.#reachEnd();
    } catch (error) {
      if (hasKafkaCode(error, ...forgottenSession)) return;
      if (!hasKafkaCode(error, "OFFSET_OUT_OF_RANGE")) throw error;
      const { topic } = this.#options;
      const starts = await this.#consumer.listOffsets({ topics: [topic], timestamp: earliest });
      this.#restart(starts.get(topic)?.[policyPartition] ?? 0n);
    }
  }

  #take(batch: RecordsBatch): void {
    const { firstOffset, lastOffsetDelta, attributes, records } = batch;
    const isControl = (attributes & controlBatch) !== 0;
    for (const { offsetDelta, key, value } of isControl ? [] : records) {
      // A broker answers with whole batches, which may begin before the place that was asked for.
      if (key === null || firstOffset + BigInt(offsetDelta) < this.#offset) continue;
      this.#options.onRecord(key.toString("utf8"), value ?? undefined);
    }
    this.#offset = firstOffset + BigInt(lastOffsetDelta) + 1n;
  }

  #restart(offset: bigint): void {
    if (this.#offset > 0n) this.#options.onReset();
    this.#offset = offset;
    this.#isFollowing = false;
  }

  #reachEnd(): void {
    if (this.#isFollowing || this.#closed) return;
    this.#isFollowing = true;
    this.#options.onCaughtUp();
  }
}

/** What is used of a batch of records. */
interface RecordsBatch {
  readonly firstOffset: bigint;
  readonly lastOffsetDelta: number;
  readonly attributes: number;
  readonly records: readonly {
    readonly offsetDelta: number;
    readonly key: Buffer | null;
    readonly value: Buffer | null;
  }[];
}
