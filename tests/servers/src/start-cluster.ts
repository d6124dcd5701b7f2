import { findOwner, findOwners, parseClusterView, type SeenNode } from "./cluster-view.ts";
import { isReplicating, readRole } from "./replication.ts";
import { closeAll, startAll } from "./start-all.ts";
import { startServer } from "./start-server.ts";
import type { Flavor, TestServer } from "./test-server.ts";
import { waitUntil } from "./wait-until.ts";

export interface ClusterOptions {
  readonly flavor: Flavor;
  readonly shards?: number;
  /** Of each shard. */
  readonly replicas?: number;
  /** How long a node is silent before others hold it to be down. */
  readonly nodeTimeoutMs?: number;
  /** More of the nodes' command line. */
  readonly args?: readonly string[];
}

export interface TestCluster {
  readonly flavor: Flavor;
  /** The primaries at the start, then the replicas of the first, and so on. */
  readonly nodes: readonly TestServer[];
  readonly urls: readonly string[];
  ownerOf(slot: number): Promise<TestServer>;
  /** A replica that runs. */
  replicaOf(node: TestServer): Promise<TestServer | undefined>;
  /** Moves a slot with its keys. */
  migrateSlot(slot: number, to: TestServer): Promise<void>;
  /** From here on the owner answers `ASK` for keys of the slot that it does not have. */
  beginMigration(slot: number, to: TestServer): Promise<void>;
  /** Moves keys that a migration was begun for, all of them unless some are named. */
  moveKeys(slot: number, to: TestServer, keys?: readonly string[]): Promise<void>;
  /** Moves the remaining keys, and makes the other node the owner. */
  finishMigration(slot: number, to: TestServer): Promise<void>;
  /**
   * Resolves when the nodes that run agree that every slot has an owner, every owner runs, and every replica that runs
   * follows its primary.
   */
  waitUntilOk(withinMs?: number): Promise<void>;
  close(): Promise<void>;
}

const slotCount = 16_384;
const settleWithinMs = 15_000;
const migrateTimeoutMs = 5_000;
const keysAtOnce = 100;

export async function startCluster(options: ClusterOptions): Promise<TestCluster> {
  const { flavor, shards = 3, replicas = 0, nodeTimeoutMs = 1_000, args = [] } = options;
  const nodeArgs = [
    ...["--cluster-enabled", "yes", "--cluster-node-timeout", String(nodeTimeoutMs)],
    ...["--repl-diskless-sync-delay", "0", ...args],
  ];
  const nodes = await startAll(shards * (1 + replicas), () => startServer({ flavor, args: nodeArgs }));
  try {
    const ids = await Promise.all(nodes.map(async (node) => String(await node.command("CLUSTER", "MYID"))));
    await joinNodes(nodes, shards);
    await assignReplicas(nodes, ids, shards);
    const cluster = createCluster(flavor, nodes, ids);
    await cluster.waitUntilOk();
    return cluster;
  } catch (error) {
    await closeAll(nodes);
    throw error;
  }
}

async function joinNodes(nodes: readonly TestServer[], shards: number): Promise<void> {
  for (const [index, node] of nodes.entries()) {
    // Nodes with the same epoch would have to find out among themselves which gives way.
    await node.command("CLUSTER", "SET-CONFIG-EPOCH", index + 1);
    const firstSlot = Math.floor((index * slotCount) / shards);
    const lastSlot = Math.floor(((index + 1) * slotCount) / shards) - 1;
    if (index < shards) await node.command("CLUSTER", "ADDSLOTSRANGE", firstSlot, lastSlot);
  }
  for (const [index, node] of nodes.entries()) {
    // All are introduced to all, because rumours take seconds.
    for (const other of nodes.slice(index + 1)) await node.command("CLUSTER", "MEET", other.host, other.port);
  }
  await waitUntil("all nodes of the cluster know one another", settleWithinMs, async () => {
    const views = await Promise.all(nodes.map(readView));
    const known = views.every((view) => view.length === nodes.length && view.every((node) => !isStranger(node)));
    return known ? true : undefined;
  });
}

async function assignReplicas(nodes: readonly TestServer[], ids: readonly string[], shards: number): Promise<void> {
  const perShard = nodes.length / shards - 1;
  for (const [index, replica] of nodes.slice(shards).entries()) {
    await replica.command("CLUSTER", "REPLICATE", String(ids[Math.floor(index / perShard)]));
  }
}

function createCluster(flavor: Flavor, nodes: readonly TestServer[], ids: readonly string[]): TestCluster {
  const running = (): readonly TestServer[] => nodes.filter((node) => node.state === "running");
  const findId = (node: TestServer): string => String(ids[nodes.indexOf(node)]);
  const findNode = (id: string | undefined): TestServer | undefined => nodes.find((node) => findId(node) === id);
  const anyView = async (): Promise<readonly SeenNode[]> => {
    const [node] = running();
    if (node === undefined) throw new Error("No node of the cluster is running; start one first.");
    return readView(node);
  };

  const ownerOf = async (slot: number): Promise<TestServer> => {
    const owner = findNode(findOwner(await anyView(), slot)?.id);
    if (owner === undefined) throw new Error(`Slot ${slot} has no owner.`);
    return owner;
  };

  const beginMigration = async (slot: number, to: TestServer): Promise<void> => {
    const from = await ownerOf(slot);
    await to.command("CLUSTER", "SETSLOT", slot, "IMPORTING", findId(from));
    await from.command("CLUSTER", "SETSLOT", slot, "MIGRATING", findId(to));
  };

  const moveKeys = async (slot: number, to: TestServer, keys?: readonly string[]): Promise<void> => {
    const from = await ownerOf(slot);
    const move = (some: readonly string[]): Promise<unknown> =>
      from.command("MIGRATE", to.host, to.port, "", 0, migrateTimeoutMs, "KEYS", ...some);
    if (keys !== undefined) {
      await move(keys);
      return;
    }
    for (;;) {
      const some = (await from.command("CLUSTER", "GETKEYSINSLOT", slot, keysAtOnce)) as readonly string[];
      if (some.length === 0) return;
      await move(some);
    }
  };

  const waitUntilOk = async (withinMs: number = settleWithinMs): Promise<void> => {
    await waitUntil("the cluster is whole", withinMs, async () => {
      const asked = running();
      const views = await Promise.all(asked.map(readView));
      const whole =
        (await Promise.all(asked.map(isOk))).every(Boolean) &&
        new Set(views.map(findOwners)).size === 1 &&
        views.every((view) => view.every(isSeenWell)) &&
        (await Promise.all(asked.map(isReplicatingOrPrimary))).every(Boolean);
      return whole ? true : undefined;
    });
  };

  /** An owner runs, and a node that runs is not held to be down. */
  const isSeenWell = ({ id, flags, slots }: SeenNode): boolean => {
    const runs = findNode(id)?.state === "running";
    return runs ? !flags.some((flag) => flag.startsWith("fail")) : slots.length === 0;
  };

  const finishMigration = async (slot: number, to: TestServer): Promise<void> => {
    const from = await ownerOf(slot);
    await moveKeys(slot, to);
    // The new owner first, so that the slot always has an owner.
    const rest = (await readView(to)).filter(({ flags }) => flags.includes("master")).map(({ id }) => findNode(id));
    for (const node of new Set([to, from, ...rest])) {
      if (node?.state === "running") await node.command("CLUSTER", "SETSLOT", slot, "NODE", findId(to));
    }
    await waitUntilOk();
  };

  return {
    flavor,
    nodes,
    urls: nodes.map((node) => node.url),
    ownerOf,
    replicaOf: async (node) => {
      const replicas = (await anyView())
        .filter(({ primaryId }) => primaryId === findId(node))
        .map(({ id }) => findNode(id));
      return replicas.find((replica) => replica?.state === "running");
    },
    migrateSlot: async (slot, to) => {
      await beginMigration(slot, to);
      await finishMigration(slot, to);
    },
    beginMigration,
    moveKeys,
    finishMigration,
    waitUntilOk,
    close: () => closeAll(nodes),
  };
}

async function readView(node: TestServer): Promise<readonly SeenNode[]> {
  return parseClusterView(String(await node.command("CLUSTER", "NODES")));
}

/** Met, but not yet known by its own id. */
function isStranger({ flags }: SeenNode): boolean {
  return flags.includes("handshake") || flags.includes("noaddr");
}

async function isOk(node: TestServer): Promise<boolean> {
  return String(await node.command("CLUSTER", "INFO")).includes("cluster_state:ok");
}

async function isReplicatingOrPrimary(node: TestServer): Promise<boolean> {
  return (await readRole(node)) === "master" || (await isReplicating(node));
}
