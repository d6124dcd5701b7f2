import { startMockKafka, startPostgres, type TestKafka, type TestPostgres } from "@sluice/test-servers";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import type { Sluice } from "../restart/start-sluice.ts";
import { createFleet, type Fleet, limitsOn, patience, readStatus, steerWell, twoPolicies, untilAll } from "./fleet.ts";

let postgres: TestPostgres;
let kafka: TestKafka;
let fleet: Fleet;
let nodes: Sluice[];

beforeAll(async () => {
  [postgres, kafka] = await Promise.all([startPostgres(), startMockKafka(3)]);
  fleet = await createFleet({
    ...{ SLUICE_STORE_URL: postgres.url, SLUICE_PUSH: "kafka", SLUICE_KAFKA: kafka.broker },
    // Nothing on disk: the topic alone keeps policies.
    SLUICE_POLICY_SNAPSHOT: "",
  });
  nodes = [await fleet.start("one"), await fleet.start("two")];
}, 180_000);

afterAll(async () => {
  await fleet?.close();
  await Promise.all([postgres?.close(), kafka?.close()]);
});

const readStore = async (node: Sluice): Promise<Record<string, unknown>> => (await readStatus(node)).store;

describe("a fleet whose policies travel by Kafka", () => {
  it("applies a change on all nodes, and has it in the topic", async () => {
    await steerWell(nodes[0]!, fleet, "POST", "/import", twoPolicies(3));
    await untilAll(nodes, { limit: 3 });
    for (const node of nodes)
      await vi.waitFor(async () => {
        const { generation, push } = await readStore(node);
        expect(push).toEqual({ kind: "kafka", connected: true, topic_generation: generation });
      }, patience);
    const keys = (await kafka.read("sluice.policies")).map(({ key }) => key);
    expect(keys.every((key) => /^[\da-f]{12}\/(generation|policies\/)/.test(key))).toBe(true);
  }, 120_000);

  it("starts a node from the topic alone while the store is unavailable", async () => {
    await postgres.stop("SIGKILL");
    const late = await fleet.start("three");
    expect(await limitsOn(late)).toMatchObject({ p: 3, q: 3 });
    expect(await readStore(late)).toMatchObject({ source: "topic", state: "away" });
    expect(late.log).toContain("policies from the Kafka topic decide");
    nodes.push(late);
  }, 120_000);

  it("keeps its policies while Kafka is unavailable as well, and reports each loss once", async () => {
    await kafka.close();
    for (const node of nodes) {
      await vi.waitFor(
        async () => expect(await readStore(node)).toMatchObject({ push: { connected: false } }),
        patience,
      );
      expect(await limitsOn(node)).toMatchObject({ p: 3, q: 3 });
      expect(node.log.split("policy changes are no longer pushed to this node")).toHaveLength(2);
    }
  }, 120_000);

  it("follows the store again when that is back, with or without Kafka", async () => {
    await postgres.start();
    for (const node of nodes)
      await vi.waitFor(async () => expect(await readStore(node)).toMatchObject({ state: "current" }), patience);
    await steerWell(nodes[0]!, fleet, "POST", "/import", twoPolicies(4));
    await untilAll(nodes, { limit: 4 });
  }, 120_000);
});
