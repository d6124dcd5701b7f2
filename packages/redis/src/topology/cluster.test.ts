import { flavors, startCluster, type TestCluster, type TestServer } from "@sluice/test-servers";
import { StoreUnavailable } from "sluice";
import { compileTestLimit, resolvedLimit, testWindow } from "sluice/testing";
import { afterEach, describe, expect, it } from "vitest";
import { createLaneTags, findHome, laneNumber } from "../place/lanes.ts";
import { RedisCounters } from "../redis-counters.ts";
import type { RedisEvent } from "../site.ts";

/** Servers notice the end of a connection in their own time. */
const soon = { timeout: 30_000 };

const limit = compileTestLimit({ algorithm: "gcra", windows: [testWindow(1000, 3_600_000)] });
const take = resolvedLimit(limit, "u1");
const lanes = 8;
const { slot } = createLaneTags(lanes)[laneNumber(findHome(take), lanes)]!;

describe.each(flavors)("counters on a %s cluster", (flavor) => {
  let cluster: TestCluster;
  let store: RedisCounters;
  let events: RedisEvent[];

  afterEach(async () => {
    await store.close();
    await cluster.close();
  });

  async function open(options: { readonly replicas: number; readonly seeds: number }): Promise<void> {
    cluster = await startCluster({ flavor, replicas: options.replicas, nodeTimeoutMs: 500 });
    const seeds = cluster.nodes.slice(0, options.seeds).map(({ host, port }) => `${host}:${port}`);
    events = [];
    store = new RedisCounters({
      servers: `redis+cluster://${seeds.join(",")}`,
      deadlineMs: 2000,
      lanes,
      onEvent: (event) => events.push(event),
    });
    await store.connected();
  }

  const served = async (): Promise<boolean | undefined> => (await store.take([take]).catch(() => undefined))?.taken;
  const serverName = ({ host, port }: TestServer): string => `${host}:${port}`;

  it("find every node by any of them", async () => {
    await open({ replicas: 0, seeds: 1 });
    expect(store.stats.shards.map(({ name }) => name).sort()).toEqual(cluster.nodes.map(serverName).sort());
    expect(await served()).toBe(true);
    expect(store.stats.moves).toBe(0);
    const keys = await Promise.all(cluster.nodes.map(async (node) => [serverName(node), await node.command("DBSIZE")]));
    expect(keys.filter(([, count]) => count !== 0).map(([name]) => name)).toEqual([store.findShard(take)?.name]);
  }, 60_000);

  it("are served by a replica soon after their primary died, and by it still when the primary is back", async () => {
    await open({ replicas: 1, seeds: 6 });
    expect(await served()).toBe(true);
    const primary = await cluster.ownerOf(slot);
    const replica = (await cluster.replicaOf(primary))!;
    await primary.command("WAIT", 1, 1000);
    await primary.kill();
    await expect.poll(() => store.ready, soon).toBe(false);
    await expect(store.take([take])).rejects.toBeInstanceOf(StoreUnavailable);
    await expect.poll(served, { timeout: 30_000 }).toBe(true);
    expect(store.stats.shards.map(({ name }) => name)).toContain(serverName(replica));
    expect(store.stats.moves).toBeGreaterThan(0);
    expect(store.stats.shards.map(({ name }) => name)).not.toContain(serverName(primary));
    await expect.poll(() => store.ready, { timeout: 30_000 }).toBe(true);
    // What the replica knew is still counted.
    expect((await store.peek([take])).outcomes[0]!.remaining).toBeLessThanOrEqual(998);

    await primary.restart();
    await cluster.waitUntilOk();
    expect(await served()).toBe(true);
    expect(store.stats.shards.map(({ name }) => name)).not.toContain(serverName(primary));
  }, 60_000);

  it("follow their slot while it moves and after, and charge once", async () => {
    await open({ replicas: 0, seeds: 3 });
    await store.take([take]);
    const from = await cluster.ownerOf(slot);
    const to = cluster.nodes.find((node) => node !== from)!;
    await cluster.beginMigration(slot, to);
    // The key is still where it was; a new one would be asked for on the other node.
    expect((await store.take([take])).outcomes[0]!.remaining).toBe(998);
    await cluster.moveKeys(slot, to);
    expect((await store.take([take])).outcomes[0]!.remaining).toBe(997);
    await cluster.finishMigration(slot, to);
    expect((await store.take([take])).outcomes[0]!.remaining).toBe(996);
    expect((await store.take([take])).outcomes[0]!.remaining).toBe(995);
    expect(events.some(({ kind }) => kind === "moved")).toBe(true);
  }, 60_000);
});
