import assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { type Sluice, startSluice } from "../../restart/start-sluice.ts";
import type { KafkaCase } from "./kafka-case.ts";
import type { RealKafka } from "./start-kafka.ts";
import { until } from "./until.ts";

const decisions = 600;

/** Usage events that leave by a real broker. */
export const eventCases: readonly KafkaCase[] = [
  {
    name: `the events of ${decisions} decisions are there once each, in order per subject, and two readers of a group share them`,
    run: (kafka) =>
      withServer(kafka, "events.group", async (server) => {
        const ids = await decide(server, 0, decisions);
        await until("all events are there", async () => (await readIds(kafka, "events.group")).length >= decisions);
        const stored = await readIds(kafka, "events.group");
        assert.deepEqual(stored.toSorted(), ids.toSorted());
        for (const [subject, inOrder] of await readBySubject(kafka, "events.group"))
          assert.deepEqual(
            inOrder,
            ids.filter((_, index) => `tenant-${index % 7}` === subject),
          );
        const readers = [readAsGroup(kafka, "events.group"), readAsGroup(kafka, "events.group")];
        try {
          await until(
            "the group has read everything",
            async () => readers.flatMap(({ ids: read }) => read).length >= decisions,
          );
          assert.deepEqual(readers.flatMap(({ ids: read }) => read).toSorted(), ids.toSorted());
        } finally {
          await Promise.all(readers.map((reader) => reader.close()));
        }
      }),
  },
  {
    name: "no event is lost when the broker is killed in the middle and started again",
    run: (kafka) =>
      withServer(kafka, "events.killed", async (server) => {
        const third = decisions / 3;
        const ids = await decide(server, 0, third);
        await until("some events are there", async () => (await readIds(kafka, "events.killed")).length > 0);
        const killed = kafka.kill();
        try {
          ids.push(...(await decide(server, third, third)));
          await killed;
        } finally {
          await kafka.start();
        }
        ids.push(...(await decide(server, 2 * third, third)));
        await until(
          "all events are there",
          async () => new Set(await readIds(kafka, "events.killed")).size >= decisions,
        );
        assert.deepEqual([...new Set(await readIds(kafka, "events.killed"))].toSorted(), ids.toSorted());
      }),
  },
];

const policies = {
  policies: [
    { id: "billed", events: "each", limits: [{ by: ["tenant"], windows: ["1000000/h"] }], on_failure: "open" },
  ],
};

export async function withServer(
  kafka: RealKafka,
  topic: string,
  play: (server: Sluice) => Promise<void>,
  env: Readonly<Record<string, string>> = {},
): Promise<void> {
  const folder = await mkdtemp(path.join(tmpdir(), "sluice-kafka-events-"));
  const config = path.join(folder, "policies.json");
  await writeFile(config, JSON.stringify(policies));
  const server = await startSluice({
    ...{ RATE_LIMIT_CONFIG: config, SLUICE_KAFKA: kafka.broker, SLUICE_USAGE_EVENTS: `kafka:?topic=${topic}` },
    ...env,
  });
  try {
    await play(server);
  } finally {
    await server.kill();
    await rm(folder, { recursive: true, force: true });
  }
}

/** Checks with a request id each. Returns the ids. */
export async function decide({ http }: Sluice, from: number, count: number): Promise<string[]> {
  const ids = Array.from({ length: count }, (_, index) => `request-${from + index}`);
  for (const [index, id] of ids.entries()) {
    const response = await fetch(`${http}/v1/check`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ dimensions: { tenant: `tenant-${index % 7}` }, id }),
    });
    assert.equal(response.status, 200, await response.text());
  }
  return ids;
}

const readId = (payload: string | null): string =>
  (JSON.parse(payload ?? "{}") as { data: { request_id: string } }).data.request_id;

export async function readIds(kafka: RealKafka, topic: string): Promise<readonly string[]> {
  return (await kafka.read(topic).catch(() => [])).map(({ payload }) => readId(payload));
}

async function readBySubject(kafka: RealKafka, topic: string): Promise<ReadonlyMap<string, readonly string[]>> {
  const ids = new Map<string, string[]>();
  for (const { key, payload } of await kafka.read(topic)) {
    const inOrder = ids.get(key ?? "") ?? [];
    ids.set(key ?? "", [...inOrder, readId(payload)]);
  }
  return ids;
}

interface GroupReader {
  readonly ids: string[];
  close(): Promise<void>;
}

/** A member of a consumer group that is not ours: librdkafka's. */
function readAsGroup(kafka: RealKafka, topic: string): GroupReader {
  const args = ["-b", kafka.broker, "-q", "-u", "-J", "-X", "auto.offset.reset=earliest", "-G", "billing", topic];
  const child: ChildProcess = spawn("kcat", args, { stdio: ["ignore", "pipe", "ignore"] });
  const ids: string[] = [];
  let rest = "";
  child.stdout!.setEncoding("utf8").on("data", (text: string) => {
    const lines = (rest + text).split("\n");
    rest = lines.pop() ?? "";
    ids.push(...lines.map((line) => readId((JSON.parse(line) as { payload: string }).payload)));
  });
  return {
    ids,
    async close(): Promise<void> {
      const ended = once(child, "exit");
      child.kill("SIGKILL");
      await ended;
    },
  };
}
