import { type Address, type Connect, type RedisConnection, renderAddress } from "../connect/redis-connection.ts";
import { Looks, type LookTimes } from "./looks.ts";
import type { Shard, Topology, TopologyListener } from "./topology.ts";
import { within } from "./within.ts";

const lookTimes: LookTimes = { everyMs: 250, againMs: 250, anywayMs: 5_000 };
const lookWithinMs = 1000;

export interface SentinelOptions {
  readonly sentinels: readonly Address[];
  /** The Sentinels' name for the primary. */
  readonly masterName: string;
  /** Opens connections to Sentinels, which may need other credentials than servers do. */
  readonly connectSentinel: Connect;
  readonly connect: Connect;
}

/**
 * The primary that Sentinels name. When it fails they are asked again, until one names a server that can be reached and
 * calls itself primary. Only then do we switch to it: a Sentinel that was cut off may name one that is long gone.
 */
export function sentinel(options: SentinelOptions, listener: TopologyListener): Topology {
  return new SentinelTopology(options, listener);
}

interface Sentinel {
  readonly connection: RedisConnection;
  /** Why it does not name a primary. */
  problem: Error | undefined;
}

interface Primary {
  readonly name: string;
  readonly connection: RedisConnection;
  readonly shard: Shard;
}

class SentinelTopology implements Topology {
  readonly clustered = false;
  readonly #options: SentinelOptions;
  readonly #listener: TopologyListener;
  /** The one that was right last comes first. */
  #sentinels: readonly Sentinel[];
  #primary: Primary | undefined;
  /** A named server while its role is being checked. */
  #candidate: RedisConnection | undefined;
  #sentinelsReported = false;
  readonly #looks = new Looks(lookTimes, () => this.#look());

  constructor(options: SentinelOptions, listener: TopologyListener) {
    this.#options = options;
    this.#listener = listener;
    this.#sentinels = options.sentinels.map((address) => {
      const one: Sentinel = {
        problem: undefined,
        connection: options.connectSentinel(address, {
          onReady: () => {
            one.problem = undefined;
            this.suspect();
          },
          onLost: (error) => {
            one.problem = error;
            this.#reportSentinels();
          },
        }),
      };
      return one;
    });
  }

  get shards(): readonly Shard[] {
    return this.#primary === undefined ? [] : [this.#primary.shard];
  }

  findShard(): Shard | undefined {
    return this.#primary?.shard;
  }

  suspect(): void {
    this.#looks.soon();
  }

  close(): void {
    this.#looks.close();
    for (const { connection } of this.#sentinels) connection.close();
    this.#candidate?.close();
    this.#primary?.connection.close();
    this.#primary = undefined;
  }

  /** Whether a Sentinel names a server that calls itself primary. */
  async #look(): Promise<boolean> {
    for (const one of this.#sentinels) {
      if (!one.connection.ready) continue;
      const address = await this.#ask(one);
      if (this.#looks.closed) return false;
      if (address === undefined) continue;
      const isKnown = renderAddress(address) === this.#primary?.name;
      if (!(isKnown ? await this.#isPrimary() : await this.#tryOut(address))) continue;
      this.#sentinels = [one, ...this.#sentinels.filter((other) => other !== one)];
      return true;
    }
    return false;
  }

  async #ask(one: Sentinel): Promise<Address | undefined> {
    try {
      const question = ["SENTINEL", "GET-MASTER-ADDR-BY-NAME", this.#options.masterName];
      const reply = await within(one.connection.send(question), lookWithinMs);
      if (!Array.isArray(reply)) throw new Error("it is not known here");
      one.problem = undefined;
      this.#sentinelsReported = false;
      return { kind: "tcp", host: String(reply[0]), port: Number(reply[1]) };
    } catch (error) {
      one.problem = error instanceof Error ? error : new Error(String(error));
      this.#reportSentinels();
      return undefined;
    }
  }

  /** Once, when there is none left to ask. */
  #reportSentinels(): void {
    const problems = this.#sentinels.map(({ problem }) => problem);
    if (this.#looks.closed || this.#sentinelsReported || problems.includes(undefined)) return;
    this.#sentinelsReported = true;
    const { masterName } = this.#options;
    const last = problems.at(-1);
    const message = `no Sentinel names the primary ${masterName}; the last said: ${last?.message}`;
    this.#listener.onDisconnected(masterName, new Error(message, { cause: last }));
  }

  /** A demoted primary may still be named for a moment, and would refuse every write. */
  async #isPrimary(): Promise<boolean> {
    return this.#primary?.connection.ready === true && (await callsItselfPrimary(this.#primary.connection));
  }

  /** Connects to a named server, and switches to it if it is a primary. */
  async #tryOut(address: Address): Promise<boolean> {
    const name = renderAddress(address);
    const { connection, connected } = this.#connect(address, name);
    this.#candidate = connection;
    const right = (await connected) && (await callsItselfPrimary(connection));
    this.#candidate = undefined;
    if (this.#looks.closed) return false;
    if (!right) {
      connection.close();
      return false;
    }
    const before = this.#primary;
    const shard: Shard = {
      name,
      get ready() {
        return connection.ready;
      },
      send: (_slot, args) => connection.send(args),
      renew: () => connection.renew(),
    };
    this.#primary = { name, connection, shard };
    before?.connection.close();
    this.#listener.onConnected(name);
    if (before !== undefined) this.#listener.onMoved(`the primary is ${name} now, and was ${before.name}`);
    return true;
  }

  /** `connected` resolves with whether the first attempt succeeded. Later events concern the primary. */
  #connect(address: Address, name: string): { connection: RedisConnection; connected: Promise<boolean> } {
    let settle: (ready: boolean) => void = () => undefined;
    const connected = new Promise<boolean>((resolve) => {
      settle = resolve;
    });
    const isOurs = (): boolean => this.#primary?.connection === connection;
    const connection = this.#options.connect(address, {
      onReady: () => {
        settle(true);
        if (isOurs()) this.#listener.onConnected(name);
      },
      onLost: (error) => {
        settle(false);
        this.#listener.onDisconnected(name, error);
        if (isOurs()) this.suspect();
      },
    });
    return { connection, connected: within(connected, lookWithinMs).catch(() => false) };
  }
}

async function callsItselfPrimary(connection: RedisConnection): Promise<boolean> {
  try {
    const role = await within(connection.send(["ROLE"]), lookWithinMs);
    return Array.isArray(role) && role[0] === "master";
  } catch (error) {
    // A user that may count need not be allowed to ask that. Then the Sentinel's word has to do.
    return error instanceof Error && error.message.startsWith("NOPERM");
  }
}
