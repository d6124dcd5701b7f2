import assert from "node:assert/strict";
import { setTimeout as pause } from "node:timers/promises";
import { startPostgres, type TestPostgres } from "@sluice/test-servers";
import type { KafkaCase } from "./kafka-case.ts";
import { createKafkaFleet, type KafkaFleet, readLimit, readMetric, readStore } from "./kafka-fleet.ts";
import type { RealKafka } from "./start-kafka.ts";
import { until } from "./until.ts";

const changes = 20;

/** Policies that travel by a topic of a real broker. */
export const policyCases: readonly KafkaCase[] = [
  {
    name: `a change reaches three nodes by the topic, in less than a second (the median of ${changes} changes)`,
    run: (kafka) =>
      withFleet(kafka, "fast", async ({ fleet }) => {
        const [one, two, three] = [await fleet.start("one"), await fleet.start("two"), await fleet.start("three")];
        const nodes = [one, two, three];
        const tookMs: number[] = [];
        for (let limit = 1; limit <= changes; limit++) {
          await fleet.putLimit(nodes[limit % 3]!, limit);
          const answeredMs = performance.now();
          for (const node of nodes)
            await until("the node has the change", async () => (await readLimit(node)) === limit);
          tookMs.push(performance.now() - answeredMs);
          await pause(Math.random() * 300);
        }
        const median = tookMs.toSorted((a, b) => a - b)[changes / 2]!;
        assert.ok(median < 1_000, `the median was ${median} ms`);
        for (const node of nodes) assert.ok((await readMetric(node, "sluice_store_pushes_total")) > changes / 3);
      }),
  },
  {
    name: "a node starts from the topic alone while the policy store is down, and follows the store when it is back",
    run: (kafka) =>
      withFleet(kafka, "warm", async ({ fleet, postgres }) => {
        const first = await fleet.start("first");
        await fleet.putLimit(first, 7);
        await untilInTopic(fleet);
        await postgres.stop("SIGKILL");
        const late = await fleet.start("late");
        assert.equal(await readLimit(late), 7);
        assert.equal((await readStore(late)).source, "topic");
        await postgres.start();
        await until("the store is back", async () => (await readStore(late)).state === "current");
        await fleet.putLimit(first, 8);
        await until("the node has the change", async () => (await readLimit(late)) === 8);
      }),
  },
  {
    name: "a broker that is killed costs no policies: nodes keep theirs, and the topic has the changes made meanwhile",
    run: (kafka) =>
      withFleet(kafka, "killed", async ({ fleet, postgres }) => {
        const [one, two] = [await fleet.start("one"), await fleet.start("two")];
        await fleet.putLimit(one, 1);
        await untilInTopic(fleet);
        await kafka.kill();
        try {
          for (const node of [one, two])
            await until("the node notices", async () => !(await readStore(node)).push.connected);
          await fleet.putLimit(one, 2);
          for (const node of [one, two])
            await until("polling finds the change", async () => (await readLimit(node)) === 2);
        } finally {
          await kafka.start();
        }
        for (const node of [one, two])
          await until("the node is connected again", async () => (await readStore(node)).push.connected);
        await untilInTopic(fleet);
        await postgres.stop("SIGKILL");
        assert.equal(await readLimit(await fleet.start("late")), 2);
      }),
  },
  {
    name: "compaction leaves the newest generation, whole, and a node still starts from it",
    run: (kafka) =>
      withFleet(kafka, "compacted", async ({ fleet, postgres, topic }) => {
        const one = await fleet.start("one");
        let limit = 0;
        await until("the broker compacts", async () => {
          limit += 1;
          await fleet.putLimit(one, limit);
          await pause(200);
          const records = await kafka.read(topic);
          return limit > 20 && records.length < limit;
        });
        await untilInTopic(fleet);
        await postgres.stop("SIGKILL");
        const late = await fleet.start("late");
        assert.deepEqual([await readLimit(late), (await readStore(late)).source], [limit, "topic"]);
      }),
  },
];

interface World {
  readonly fleet: KafkaFleet;
  readonly postgres: TestPostgres;
  readonly topic: string;
}

export async function withFleet(
  kafka: RealKafka,
  name: string,
  play: (world: World) => Promise<void>,
  env: Readonly<Record<string, string>> = {},
): Promise<void> {
  const topic = `policies.${name}`;
  const postgres = await startPostgres();
  const fleet = await createKafkaFleet({
    ...{ SLUICE_STORE_URL: postgres.url, SLUICE_PUSH: "kafka", SLUICE_KAFKA: kafka.broker },
    SLUICE_KAFKA_POLICY_TOPIC: topic,
    ...env,
  });
  try {
    await play({ fleet, postgres, topic });
  } finally {
    await fleet.close();
    await postgres.close();
  }
}

/** Resolves when the topic has what the first node decides by. */
export function untilInTopic({ nodes: [node] }: KafkaFleet): Promise<void> {
  return until("the topic has the newest generation", async () => {
    const { generation, push } = await readStore(node!);
    return push.topic_generation === generation;
  });
}
