import {
  type Address,
  type Connect,
  type RedisArgument,
  type RedisConnection,
  renderAddress,
} from "../connect/redis-connection.ts";
import { slotCount } from "../place/key-slot.ts";
import { Looks, type LookTimes } from "./looks.ts";
import type { Shard, Topology, TopologyListener } from "./topology.ts";
import { within } from "./within.ts";

/** How often a command follows slots to where they moved. */
const mostRedirections = 5;
/** Slots move without any server failing, so the topology is read now and then anyway. */
const lookTimes: LookTimes = { everyMs: 200, againMs: 400, anywayMs: 30_000 };
const lookWithinMs = 1000;

/**
 * The primaries of a cluster, one connection each, and which of them holds which slot. A command whose slot moved
 * (MOVED) or is moving (ASK) is forwarded to where the server says: the first server did not carry it out. Nothing else
 * is sent twice.
 */
export function cluster(seeds: readonly Address[], connect: Connect, listener: TopologyListener): Topology {
  return new ClusterTopology(seeds, connect, listener);
}

class ClusterTopology implements Topology {
  readonly clustered = true;
  readonly #connect: Connect;
  readonly #listener: TopologyListener;
  readonly #seeds: readonly Address[];
  readonly #nodes = new Map<string, Node>();
  readonly #owners: (Node | undefined)[] = new Array(slotCount).fill(undefined);
  readonly #looks = new Looks(lookTimes, () => this.#look());
  #turn = 0;

  constructor(seeds: readonly Address[], connect: Connect, listener: TopologyListener) {
    this.#connect = connect;
    this.#listener = listener;
    this.#seeds = seeds;
    for (const seed of seeds) this.#nodeAt(seed);
  }

  get shards(): readonly Shard[] {
    const owners = new Set(this.#owners);
    return [...this.#nodes.values()].filter((node) => owners.has(node));
  }

  findShard(slot: number): Shard | undefined {
    return this.#owners[slot];
  }

  suspect(): void {
    this.#looks.soon();
  }

  close(): void {
    this.#looks.close();
    for (const node of this.#nodes.values()) node.connection.close();
    this.#nodes.clear();
  }

  #nodeAt(address: Address): Node {
    const name = renderAddress(address);
    let node = this.#nodes.get(name);
    if (node === undefined) {
      node = new Node(
        name,
        this.#connect(address, {
          onReady: () => {
            this.#listener.onConnected(name);
            if (this.#owners.every((owner) => owner === undefined)) this.suspect();
          },
          onLost: (error) => {
            this.#listener.onDisconnected(name, error);
            this.suspect();
          },
        }),
        (slot, args, from) => this.#send(slot, args, from),
      );
      this.#nodes.set(name, node);
    }
    return node;
  }

  /** Sends to a node, and on to wherever the slot is. */
  #send(slot: number, args: readonly RedisArgument[], node: Node): Promise<unknown> {
    return node.connection.send(args).catch((error: unknown) => this.#forward(slot, args, node, error));
  }

  /** Follows a slot from a node that refused, and throws what is not about its place. */
  async #forward(slot: number, args: readonly RedisArgument[], from: Node, refusal: unknown): Promise<unknown> {
    let node = from;
    let error = refusal;
    for (let redirections = 0; ; redirections++) {
      const redirection = parseRedirection(error);
      if (redirection === undefined || redirections >= mostRedirections || this.#looks.closed) throw error;
      const unnamed = redirection.host === "" || redirection.host === "?";
      const address = unnamed ? { ...redirection, host: node.host } : redirection;
      node = this.#nodeAt({ kind: "tcp", host: address.host, port: address.port });
      const asking = redirection.kind === "ask";
      if (!asking && this.#owners[slot] !== node) {
        this.#owners[slot] = node;
        this.#listener.onMoved(`slot ${slot} is held by ${node.name} now`);
        this.suspect();
      }
      if (!node.connection.ready) await node.soonReady();
      try {
        if (asking) node.connection.send(["ASKING"]).catch(() => undefined);
        return await node.connection.send(args);
      } catch (next) {
        error = next;
      }
    }
  }

  /**
   * Asks which server holds which slot. The first answer that covers every slot is believed. A node that was cut off,
   * or is being set up, knows only part of it: then the others are asked as well, and the most complete answer counts.
   */
  async #look(): Promise<boolean> {
    let fullest: readonly SlotRange[] = [];
    for (const node of this.#askable()) {
      const reply = await within(node.connection.send(["CLUSTER", "SLOTS"]), lookWithinMs).catch(() => undefined);
      if (this.#looks.closed) return false;
      const ranges = reply === undefined ? [] : parseSlots(reply, node.host);
      if (slotsIn(ranges) > slotsIn(fullest)) fullest = ranges;
      if (slotsIn(fullest) === slotCount) break;
    }
    this.#adopt(fullest);
    return this.#owners.every((owner) => owner?.ready);
  }

  /** Connected nodes, starting with another one each time. */
  #askable(): readonly Node[] {
    for (const seed of this.#seeds) this.#nodeAt(seed);
    const nodes = [...this.#nodes.values()].filter(({ connection }) => connection.ready);
    this.#turn += 1;
    const first = nodes.length === 0 ? 0 : this.#turn % nodes.length;
    return [...nodes.slice(first), ...nodes.slice(0, first)];
  }

  #adopt(ranges: readonly SlotRange[]): void {
    let moved = 0;
    const owners = new Set<Node>();
    for (const { first, last, address } of ranges) {
      const node = this.#nodeAt(address);
      owners.add(node);
      for (let slot = first; slot <= last; slot++) {
        if (this.#owners[slot] === node) continue;
        this.#owners[slot] = node;
        moved += 1;
      }
    }
    if (moved > 0) this.#listener.onMoved(`${moved} slots are held by another server now`);
    // A node that knows only part of the cluster does not know who has left it.
    if (slotsIn(ranges) < slotCount) return;
    const seeds = new Set(this.#seeds.map(renderAddress));
    for (const [name, node] of this.#nodes) {
      if (owners.has(node) || seeds.has(name)) continue;
      node.connection.close();
      this.#nodes.delete(name);
    }
  }
}

function slotsIn(ranges: readonly SlotRange[]): number {
  return ranges.reduce((sum, { first, last }) => sum + last - first + 1, 0);
}

class Node implements Shard {
  readonly name: string;
  readonly connection: RedisConnection;
  readonly #send: (slot: number, args: readonly RedisArgument[], from: Node) => Promise<unknown>;

  constructor(
    name: string,
    connection: RedisConnection,
    send: (slot: number, args: readonly RedisArgument[], from: Node) => Promise<unknown>,
  ) {
    this.name = name;
    this.connection = connection;
    this.#send = send;
  }

  get ready(): boolean {
    return this.connection.ready;
  }

  get host(): string {
    return this.name.slice(0, this.name.lastIndexOf(":")).replace(/^\[(.*)\]$/, "$1");
  }

  send(slot: number, args: readonly RedisArgument[]): Promise<unknown> {
    return this.#send(slot, args, this);
  }

  renew(): void {
    this.connection.renew();
  }

  /** Gives a newly discovered node a moment to connect. Callers have their own deadlines. */
  async soonReady(): Promise<void> {
    for (let waitedMs = 0; waitedMs < 500 && !this.connection.ready; waitedMs += 5) await pause(5);
  }
}

interface SlotRange {
  readonly first: number;
  readonly last: number;
  readonly address: Address;
}

/** `CLUSTER SLOTS`: ranges with their primary first. An empty host means the one that was asked. */
function parseSlots(reply: unknown, askedHost: string): readonly SlotRange[] {
  if (!Array.isArray(reply)) return [];
  return reply.flatMap((range: unknown): SlotRange[] => {
    if (!Array.isArray(range)) return [];
    const [first, last, primary] = range as [number, number, [string | null, number] | undefined];
    if (primary === undefined) return [];
    const [host, port] = primary;
    const known = host === null || host === "" || host === "?" ? askedHost : String(host);
    return [{ first: Number(first), last: Number(last), address: { kind: "tcp", host: known, port: Number(port) } }];
  });
}

function parseRedirection(error: unknown): { kind: "moved" | "ask"; host: string; port: number } | undefined {
  if (!(error instanceof Error)) return undefined;
  const found = /^(MOVED|ASK) \d+ (.*):(\d+)$/.exec(error.message);
  if (found === null) return undefined;
  return { kind: found[1] === "ASK" ? "ask" : "moved", host: found[2]!, port: Number(found[3]) };
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
