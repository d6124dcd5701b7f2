import { type KafkaCluster, readKafkaCluster, renderCluster } from "../../kafka/kafka-cluster.ts";
import { type Kafka, loadKafka } from "../../kafka/load-kafka.ts";
import { hasKafkaCode, renderKafkaError } from "../../kafka/render-kafka-error.ts";
import { policyPartition, TopicReader } from "../../kafka/topic-reader.ts";
import type { Logger } from "../../observe/telemetry/logger.ts";
import type { Settings } from "../../settings/settings.ts";
import { withDeadline } from "../../with-deadline.ts";
import type { StoredGeneration } from "../documents/stored-generation.ts";
import { announcedKey, decodeGeneration, encodeGeneration, markStore, type TopicRecord } from "./generation-records.ts";
import { TopicView } from "./topic-view.ts";

export interface PolicyTopicOptions {
  readonly kafka: Kafka;
  readonly cluster: KafkaCluster;
  readonly topic: string;
  /** The policy store's address, without user and password. */
  readonly store: string;
  readonly log: Logger;
  readonly maxWaitMs?: number | undefined;
}

/** Called from now on; `onConnected` at once if the topic is being followed already. */
export interface TopicListener {
  /** The topic is followed: all of it was read. */
  readonly onConnected: () => void;
  readonly onLost: (reason: string) => void;
  readonly onAnnounced: (generation: number) => void;
  /** The newest complete generation in the topic is another one. */
  readonly onGeneration: () => void;
}

const announceWithinMs = 10_000;
const publishWithinMs = 60_000;

/** Opens the topic that settings name. Does not wait for the brokers. Throws a `SettingError` if settings do not fit. */
export async function openPolicyTopic(settings: Settings, store: string, log: Logger): Promise<PolicyTopic> {
  const cluster = await readKafkaCluster(settings);
  const kafka = await loadKafka("push");
  return new PolicyTopic({ kafka, cluster, topic: settings.kafkaPolicyTopic, store, log });
}

/**
 * A compacted Kafka topic that carries whole generations of a policy store to every node, and announces them before
 * that. Nodes read it without a consumer group. It is never the authority: while the store answers, nodes read the store.
 */
export class PolicyTopic {
  /** For logs: `sluice.policies on kafka-1:9092`. */
  readonly where: string;
  readonly #options: PolicyTopicOptions;
  readonly #mark: string;
  readonly #reader: TopicReader;
  readonly #producer: InstanceType<Kafka["Producer"]>;
  readonly #stats = { published: 0, failed: 0 };
  #view: TopicView;
  #listener: TopicListener | undefined;
  #waiting: (() => void)[] = [];
  #announcing: number | undefined;
  #isSending = false;
  #isFailing = false;
  /** The digest of the generation that was reported as unusable. */
  #unusable: string | undefined;
  #closed = false;

  constructor(options: PolicyTopicOptions) {
    const { kafka, cluster, topic, store, maxWaitMs } = options;
    this.#options = options;
    this.where = `${topic} on ${renderCluster(cluster)}`;
    this.#mark = markStore(store);
    this.#view = new TopicView(this.#mark);
    this.#producer = new kafka.Producer({
      ...cluster,
      ...{ retries: 3, retryDelay: 250, connectTimeout: 5_000, requestTimeout: 10_000, autocreateTopics: false },
    });
    this.#reader = new TopicReader({
      ...{ kafka, cluster, topic, maxWaitMs },
      create: () => this.#create(),
      onRecord: (key, value) => this.#take({ key, value }),
      onReset: () => {
        this.#view = new TopicView(this.#mark);
      },
      onCaughtUp: () => this.#onCaughtUp(),
      onLost: (reason) => this.#listener?.onLost(reason),
    });
  }

  /** Whether records arrive now. */
  get connected(): boolean {
    return this.#reader.isFollowing;
  }

  /** The newest complete generation in the topic, as far as it was read. */
  get generation(): number | undefined {
    return this.#view.newest?.generation;
  }

  /** Generations written by this process, and attempts that failed. */
  get stats(): { readonly published: number; readonly failed: number } {
    return this.#stats;
  }

  listen(listener: TopicListener): void {
    this.#listener = listener;
    if (this.connected) listener.onConnected();
  }

  /** The newest complete generation, once all of the topic was read or the time is up. Never rejects. */
  async recall(withinMs: number): Promise<StoredGeneration | undefined> {
    if (!this.connected) {
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, withinMs);
        this.#waiting.push(() => {
          clearTimeout(timer);
          resolve();
        });
      });
    }
    return this.read();
  }

  /** The newest complete generation that was read. Undefined if there is none, or it cannot be used, which is logged. */
  async read(): Promise<StoredGeneration | undefined> {
    const { newest } = this.#view;
    if (newest === undefined) return undefined;
    try {
      return await decodeGeneration(newest.bytes, newest.generation);
    } catch (error) {
      const { generation, digest } = newest;
      const reason = error instanceof Error ? error.message : String(error);
      if (this.#unusable !== digest)
        this.#options.log.error("push.generation_unusable", { at: this.where, generation, reason });
      this.#unusable = digest;
      return undefined;
    }
  }

  /** Announces a generation to all nodes. Of several that wait for a broker only the last is announced. */
  announce(generation: number): void {
    this.#announcing = generation;
    if (!this.#isSending) void this.#sendAnnouncements();
  }

  /**
   * Writes a whole generation, and deletes those that it replaces. Never rejects; resolves with whether it was written.
   * `wentBack`: it also replaces newer ones, because the store was restored from a backup.
   */
  async publish(
    stored: StoredGeneration,
    { wentBack = false }: { readonly wentBack?: boolean } = {},
  ): Promise<boolean> {
    const { generation } = stored;
    try {
      const publication = await encodeGeneration(this.#mark, stored);
      await withDeadline(this.#sendAll(publication.records), publishWithinMs, silence);
      await withDeadline(this.#sendAll(this.#view.superseded(publication, wentBack)), publishWithinMs, silence);
      this.#stats.published += 1;
      this.#succeeded();
      this.#options.log.debug("push.published", { at: this.where, generation, chunks: publication.records.length });
      return true;
    } catch (error) {
      this.#stats.failed += 1;
      this.#failed(generation, error);
      return false;
    }
  }

  async close(): Promise<void> {
    this.#closed = true;
    for (const resolve of this.#waiting.splice(0)) resolve();
    await Promise.all([this.#reader.close(), this.#producer.close(true).catch(() => undefined)]);
  }

  #take(record: TopicRecord): void {
    const news = this.#view.take(record);
    // What was there before is reported as a whole, by onConnected.
    if (news === undefined || !this.connected) return;
    if (news === "generation") this.#listener?.onGeneration();
    else this.#listener?.onAnnounced(this.#view.announced!);
  }

  #onCaughtUp(): void {
    for (const resolve of this.#waiting.splice(0)) resolve();
    this.#listener?.onConnected();
  }

  async #sendAnnouncements(): Promise<void> {
    this.#isSending = true;
    while (this.#announcing !== undefined && !this.#closed) {
      const generation = this.#announcing;
      this.#announcing = undefined;
      const record = { key: announcedKey(this.#mark), value: Buffer.from(String(generation)) };
      await withDeadline(this.#sendAll([record]), announceWithinMs, silence).then(
        () => this.#succeeded(),
        (error: unknown) => this.#failed(generation, error),
      );
    }
    this.#isSending = false;
  }

  /** One message at a time: together they might be too large for a broker. */
  async #sendAll(records: readonly TopicRecord[]): Promise<void> {
    const { topic } = this.#options;
    for (const { key, value } of records) {
      if (this.#closed) throw new Error("this server is stopping");
      const message = {
        topic,
        partition: policyPartition,
        key: Buffer.from(key),
        ...(value === undefined ? {} : { value }),
      };
      await this.#producer.send({ messages: [message], acks: -1 });
    }
  }

  /** One partition, and only the latest record of each key. */
  async #create(): Promise<void> {
    const { kafka, cluster, topic, log } = this.#options;
    const admin = new kafka.Admin({ ...cluster, retries: 0, connectTimeout: 5_000, requestTimeout: 10_000 });
    try {
      const configs = [{ name: "cleanup.policy", value: "compact" }];
      // -1: as many replicas as the brokers' default.
      await admin.createTopics({ topics: [topic], partitions: 1, replicas: -1, configs });
      log.info("push.topic_created", { at: this.where });
    } catch (error) {
      // Another node was faster.
      if (!hasKafkaCode(error, "TOPIC_ALREADY_EXISTS")) throw error;
    } finally {
      await admin.close().catch(() => undefined);
    }
  }

  #succeeded(): void {
    this.#isFailing = false;
  }

  #failed(generation: number, error: unknown): void {
    if (this.#isFailing || this.#closed) return;
    this.#isFailing = true;
    this.#options.log.warn("push.publish_failed", { at: this.where, generation, reason: renderKafkaError(error) });
  }
}

function silence(): Error {
  return new Error("the brokers do not answer");
}
