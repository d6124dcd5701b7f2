import { createHash } from "node:crypto";
import { type RedisCounters, type RedisSource, redis } from "@sluice/redis";
import { type CounterStore, StoreUnavailable } from "sluice";
import type { Receipt, ResolvedLimit, TakeAnswer, TakeOptions, WindowReading } from "sluice/store";

/** Long enough for the first call to connect, and no request hangs for longer. */
const deadlineMs = 1000;

const known = new WeakMap<object, CounterStore>();

/**
 * Counters on the server of the app's own client (ioredis, iovalkey, node-redis), over separate connections. All limiters
 * of a client share one set of counters. It is closed when the client ends, and opened again when the client reconnects.
 * The client's key prefix is kept: apps that share a server by their prefixes count separately.
 */
export function countersFromClient(client: object): CounterStore {
  let counters = known.get(client);
  if (counters === undefined) {
    counters = new ClientCounters(client);
    known.set(client, counters);
  }
  return counters;
}

class ClientCounters implements CounterStore {
  readonly local = false;
  readonly distinct = true;
  readonly #client: LendingClient;
  /** Undefined once the client has ended. */
  #counters: RedisCounters | undefined;

  constructor(client: LendingClient) {
    this.#client = client;
    this.#counters = this.#begin();
    client.on?.("end", () => {
      void this.close();
      this.#counters = undefined;
    });
  }

  async take(limits: readonly ResolvedLimit[], options?: TakeOptions): Promise<TakeAnswer> {
    return this.#current().take(limits, options);
  }

  async peek(limits: readonly ResolvedLimit[]): Promise<TakeAnswer> {
    return this.#current().peek(limits);
  }

  async give(receipt: Receipt): Promise<boolean> {
    return this.#current().give(receipt);
  }

  async charge(limits: readonly ResolvedLimit[]): Promise<void> {
    return this.#current().charge(limits);
  }

  async block(limits: readonly ResolvedLimit[], forMs: number): Promise<void> {
    return this.#current().block(limits, forMs);
  }

  async reset(limits: readonly ResolvedLimit[]): Promise<void> {
    return this.#current().reset(limits);
  }

  async read(limit: ResolvedLimit): Promise<readonly WindowReading[]> {
    return this.#current().read(limit);
  }

  async close(): Promise<void> {
    await this.#counters?.close();
  }

  #current(): RedisCounters {
    if (this.#counters !== undefined) return this.#counters;
    const { status, isOpen } = this.#client;
    const isBack = status === undefined ? isOpen === true : status !== "end";
    if (!isBack)
      throw new StoreUnavailable(
        "storage_unavailable",
        "the Redis client given as storeClient or redis has ended; connect it again",
      );
    this.#counters = this.#begin();
    return this.#counters;
  }

  #begin(): RedisCounters {
    // `redis` refuses an object that is none of those clients.
    // The stores warn of outages.
    return redis(this.#client as RedisSource, { deadlineMs, prefix: findPrefix(this.#client), warn: false });
  }
}

/** The prefix of keys. A client's prefix that counters cannot use is replaced by its hash. */
function findPrefix({ options }: LendingClient): string | undefined {
  const prefix = options?.keyPrefix || options?.redisOptions?.keyPrefix;
  if (typeof prefix !== "string" || prefix === "") return undefined;
  if (/^[\w.:-]{1,60}$/.test(prefix)) return `${prefix}s`;
  return `s-${createHash("sha256").update(prefix, "utf16le").digest("base64url").slice(0, 22)}`;
}

interface LendingClient {
  /** All three clients use this name; a cluster may have it in the options of its nodes. */
  readonly options?: { readonly keyPrefix?: unknown; readonly redisOptions?: { readonly keyPrefix?: unknown } };
  /** ioredis and iovalkey. */
  readonly status?: string;
  /** node-redis. */
  readonly isOpen?: boolean;
  on?(event: "end", listener: () => void): unknown;
}
