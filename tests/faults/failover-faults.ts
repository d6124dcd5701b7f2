import { setTimeout as sleep } from "node:timers/promises";
import { startCluster, startSentinel, type TestCluster, type TestServer } from "@sluice/test-servers";
import type { FaultScenario } from "./fault-scenario.ts";
import { playScene, type Scene } from "./play-scene.ts";

export const failoverFaults: readonly FaultScenario[] = [
  {
    name: "Sentinel failover",
    fault: "The primary is killed; the Sentinels make its replica the primary.",
    beside: "At most one burst more is admitted, because replication is asynchronous.",
    async play(flavor) {
      const sentinel = await startSentinel({ flavor, downAfterMs: 500 });
      try {
        const addresses = sentinel.sentinels.map(({ host, port }) => `${host}:${port}`);
        const options = {
          scenario: "Sentinel failover",
          flavor,
          servers: `redis+sentinel://${addresses.join(",")}/${sentinel.masterName}`,
          allServers: [...sentinel.servers, ...sentinel.sentinels],
        };
        return await playScene(options, async (scene) => {
          const primary = await sentinel.primary();
          await scene.losing("latest", () => primary.kill());
          await sentinel.waitForNewPrimary(primary);
          scene.heal();
          await scene.untilEnforced();
        });
      } finally {
        await sentinel.close();
      }
    },
  },
  {
    name: "Cluster failover",
    fault: "The primary of one shard of a cluster is killed; its replica is promoted.",
    beside: "At most one burst more is admitted on that shard, and nothing more on the others.",
    async play(flavor) {
      const cluster = await startCluster({ flavor, replicas: 1 });
      try {
        return await playScene(optionsFor("Cluster failover", cluster), async (scene) => {
          const victim = await ownerOfUser(cluster, scene.users[0]!);
          const affected: string[] = [];
          for (const user of scene.users) if ((await ownerOfUser(cluster, user)) === victim) affected.push(user);
          scene.affects(affected);
          await scene.losing("latest", () => victim.kill());
          await cluster.waitUntilOk();
          scene.heal();
          await scene.untilEnforced();
        });
      } finally {
        await cluster.close();
      }
    },
  },
  {
    name: "slots that move",
    fault:
      "Slots with counters move to another shard of a cluster under traffic, the first of them slowly: for a while its " +
      "keys are on both sides.",
    beside: "Nothing is lost and no counter restarts; checks fail only by being late, because every server is healthy.",
    async play(flavor) {
      const cluster = await startCluster({ flavor });
      try {
        return await playScene(optionsFor("slots that move", cluster), (scene) => moveSlots(scene, cluster));
      } finally {
        await cluster.close();
      }
    },
  },
];

function optionsFor(scenario: string, cluster: TestCluster): Parameters<typeof playScene>[0] {
  const addresses = cluster.nodes.map(({ host, port }) => `${host}:${port}`);
  return {
    scenario,
    flavor: cluster.flavor,
    servers: `redis+cluster://${addresses.join(",")}`,
    allServers: cluster.nodes,
    users: ["ada", "bo", "cleo", "dan"],
  };
}

async function moveSlots(scene: Scene, cluster: TestCluster): Promise<void> {
  const from = scene.traffic.checks.length;
  for (const [index, user] of scene.users.entries()) {
    const slot = await slotOfUser(cluster, user);
    const owner = await cluster.ownerOf(slot);
    const to = cluster.nodes.find((node) => node !== owner)!;
    if (index > 0) {
      await cluster.migrateSlot(slot, to);
      await sleep(200);
      continue;
    }
    await cluster.beginMigration(slot, to);
    await sleep(300);
    const keys = (await owner.command("CLUSTER", "GETKEYSINSLOT", slot, 100)) as readonly string[];
    await cluster.moveKeys(slot, to, keys.slice(0, Math.ceil(keys.length / 2)));
    await sleep(200);
    await cluster.finishMigration(slot, to);
  }
  const checks = scene.traffic.checks.slice(from);
  const degraded = checks.filter(({ decision }) => decision?.degraded !== undefined).length;
  scene.fact(`${degraded} of ${checks.length} checks degraded while slots moved`);
  // On a busy machine answers may be late, which may open a breaker; nothing fails in any other way.
  const opened = scene.events.find((event) => event.kind === "breaker" && event.state === "open");
  const failed = checks.filter(
    ({ decision, settledMs }) =>
      decision?.degraded === "storage_unavailable" && settledMs! < (opened?.atMs ?? Number.POSITIVE_INFINITY),
  );
  scene.expect(failed.length === 0, `${failed.length} checks failed although every server was well`);
  scene.heal();
  await scene.untilEnforced();
}

/** Finds the node with a user's counters. */
async function slotOfUser(cluster: TestCluster, user: string): Promise<number> {
  for (const node of cluster.nodes) {
    if (node.state !== "running") continue;
    const [key] = (await node.command("KEYS", `*:${user}`)) as readonly string[];
    if (key !== undefined) return Number(await node.command("CLUSTER", "KEYSLOT", key));
  }
  throw new Error(`No node has counters of ${user}.`);
}

async function ownerOfUser(cluster: TestCluster, user: string): Promise<TestServer> {
  return cluster.ownerOf(await slotOfUser(cluster, user));
}
