import { StoreUnavailable } from "sluice";
import type { Stalls } from "sluice/internal";
import type { CircuitBreakerOptions, CircuitState, LimitOfSubject } from "sluice/store";
import { breakerIsOpen, GuardedShard, type NowMs } from "./ask/guarded-shard.ts";
import { type AskCounts, Lane, type ScriptTuning } from "./ask/lane.ts";
import { nothingAsked, ofItsOwn } from "./ask/nothing-asked.ts";
import type { RunDelay } from "./ask/run-delay.ts";
import type { ServerLoad } from "./ask/server-load.ts";
import type { ShardFigures } from "./ask/shard-figures.ts";
import { errorFrom } from "./connect/redis-connection.ts";
import { createKeyNames, type KeyNames } from "./place/key-names.ts";
import { createLaneTags, findHome, type LaneTag, laneNumber } from "./place/lanes.ts";
import type { Shard, Topology, TopologyListener } from "./topology/topology.ts";
import { within } from "./topology/within.ts";

/** What happens to servers, for logs and metrics. */
export type RedisEvent =
  | { readonly kind: "connected"; readonly shard: string }
  | { readonly kind: "disconnected"; readonly shard: string; readonly error: Error }
  | { readonly kind: "moved"; readonly description: string }
  /** A call failed: the connection was lost during it, or the server refused it. */
  | { readonly kind: "failed"; readonly shard: string; readonly error: Error }
  | { readonly kind: "breaker"; readonly shard: string; readonly state: CircuitState; readonly why: string };

export interface SiteOptions {
  readonly openTopology: (listener: TopologyListener) => Topology;
  readonly prefix: string;
  /** Lanes in a cluster. */
  readonly lanes: number;
  readonly breaker: CircuitBreakerOptions;
  readonly maxCallWeight: number;
  readonly maxInFlight: number;
  readonly maxWaiting: number;
  readonly counts: AskCounts;
  readonly stalls: Stalls;
  readonly runDelay: RunDelay;
  readonly nowMs: NowMs;
  readonly onEvent: (event: RedisEvent) => void;
  readonly tune?: ScriptTuning | undefined;
}

/** How a server stands. */
export interface ShardStatus {
  readonly name: string;
  readonly connected: boolean;
  readonly breaker: CircuitState;
  /** How far its clock is ahead of this machine's, at most. Undefined until it was asked. */
  readonly clockAheadMs: number | undefined;
  /** How long the last exchange took, or how long one has gone unanswered. Undefined before the first. */
  readonly roundTripMs: number | undefined;
  /** Its load by its own report. Undefined until it was sampled, and if it may not be asked. */
  readonly load: ServerLoad | undefined;
  /** Live counts of the calls to it. */
  readonly figures: Readonly<ShardFigures>;
}

/** How long after opening checks wait for the first connection, as far as their time allows. */
const startingMs = 5000;

/** A Redis deployment: its servers, and the lanes that its counters live in. */
export class Site {
  readonly lanes: readonly PlacedLane[];
  readonly #topology: Topology;
  readonly #guards = new WeakMap<Shard, GuardedShard>();
  readonly #everyGuard = new Set<GuardedShard>();
  readonly #options: SiteOptions;
  #breaker: CircuitBreakerOptions;
  readonly #openedMs: number;
  /** Nothing is known yet: no server was ever connected, and none was unreachable. */
  #starting = true;
  #lastError: Error | undefined;
  #sending = 0;
  #closed = false;

  constructor(options: SiteOptions) {
    this.#options = options;
    this.#breaker = options.breaker;
    this.#openedMs = options.nowMs();
    this.#topology = options.openTopology({
      onConnected: (shard) => {
        options.onEvent({ kind: "connected", shard });
        this.#greet(shard);
        this.#wake();
      },
      onDisconnected: (shard, error) => {
        this.#lastError = error;
        // One of several nodes says little about the others.
        if (this.#topology?.clustered !== true) this.#starting = false;
        options.onEvent({ kind: "disconnected", shard, error });
      },
      onMoved: (description) => {
        // A cluster reports the first servers that it finds in the same way.
        if (!this.#starting) options.counts.moves += 1;
        options.onEvent({ kind: "moved", description });
        this.#wake();
      },
    });
    const tags: readonly LaneTag[] = this.#topology.clustered ? createLaneTags(options.lanes) : [{ tag: "", slot: 0 }];
    this.lanes = tags.map((tag, index) => this.#createLane(tag, index));
  }

  findLane(resolved: LimitOfSubject): PlacedLane {
    return this.lanes.length === 1 ? this.lanes[0]! : this.lanes[laneNumber(findHome(resolved), this.lanes.length)]!;
  }

  /** The server that holds a counter; undefined while that is not known. */
  findShard(resolved: LimitOfSubject): string | undefined {
    return this.#topology.findShard(this.findLane(resolved).slot)?.name;
  }

  /** Whether every counter has a connected server that admits calls. */
  get ready(): boolean {
    return this.lanes.every(({ slot }) => {
      const shard = this.#topology.findShard(slot);
      return shard?.ready === true && this.#guard(shard).closed;
    });
  }

  /** Why a connection was last lost, or could not be made. */
  get lastError(): Error | undefined {
    return this.#lastError;
  }

  get shards(): readonly ShardStatus[] {
    return this.#topology.shards.map((shard) => {
      const { state: breaker, clock, roundTripMs, load, figures } = this.#guard(shard);
      const startMs = Date.now() - this.#options.nowMs();
      const clockAheadMs = clock.aheadMs === undefined ? undefined : clock.aheadMs - startMs;
      return { name: shard.name, connected: shard.ready, breaker, clockAheadMs, roundTripMs, load, figures };
    });
  }

  /** Applies breaker options to the servers that are known and to those to come. */
  useBreaker(options: CircuitBreakerOptions): void {
    this.#breaker = options;
    for (const guard of this.#everyGuard) guard.configure(options);
  }

  /** Questions that wait for their turn, and calls in flight. */
  get queue(): { readonly waiting: number; readonly inFlight: number } {
    let waiting = 0;
    let inFlight = 0;
    for (const { lane } of this.lanes) {
      waiting += lane.waiting;
      inFlight += lane.inFlight;
    }
    return { waiting, inFlight };
  }

  /** Asks every server for its time, and learns its clock and latency. */
  measure(): void {
    for (const shard of this.#topology.shards) this.#guard(shard).measure();
  }

  /** Asks every server about its load. */
  sampleLoad(): void {
    for (const shard of this.#topology.shards) this.#guard(shard).sampleLoad();
  }

  /**
   * Sends one command that is not a question, under the same breaker, with a deadline. It waits for the first
   * connection too.
   */
  async send(slot: number, withinMs: number, ask: (shard: Shard) => Promise<unknown>): Promise<unknown> {
    const { nowMs } = this.#options;
    const untilMs = nowMs() + withinMs;
    while (this.#isStarting() && this.#topology.findShard(slot)?.ready !== true && nowMs() < untilMs) await moment();
    const shard = this.#topology.findShard(slot);
    if (shard === undefined || !shard.ready) {
      this.#topology.suspect();
      throw new StoreUnavailable("storage_unavailable");
    }
    const guard = this.#guard(shard);
    if (!guard.closed) throw ofItsOwn(nothingAsked(breakerIsOpen(shard)));
    const { generation } = guard;
    this.#sending += 1;
    try {
      const reply = await within(ask(shard), Math.max(untilMs - nowMs(), 1));
      guard.succeed(generation);
      return reply;
    } catch (error) {
      // A server that refuses is still answering.
      if (!(error instanceof Error && /^[A-Z]{2,} /.test(error.message))) guard.fail(generation);
      throw new StoreUnavailable("storage_unavailable", undefined, { cause: error });
    } finally {
      this.#sending -= 1;
    }
  }

  close(): void {
    this.#closed = true;
    for (const { lane } of this.lanes) lane.close();
    for (const guard of this.#everyGuard) guard.close();
    this.#topology.close();
  }

  /** Whether nothing waits for an answer. */
  get idle(): boolean {
    return this.#sending === 0 && this.lanes.every(({ lane }) => lane.idle);
  }

  /** Whether no server was ever connected, and none has failed yet. */
  #isStarting(): boolean {
    return !this.#closed && this.#starting && this.#options.nowMs() - this.#openedMs < startingMs;
  }

  #wake(): void {
    // The topology reports its first servers while it is being created.
    if (this.#closed || this.lanes === undefined) return;
    this.#dropGuards();
    if (this.ready) this.#starting = false;
    for (const { lane } of this.lanes) lane.wake();
  }

  /** Then every call carries a deadline by the server's own clock. */
  #greet(name: string): void {
    const shard = this.#topology?.shards.find((one) => one.name === name);
    if (shard === undefined) return;
    const guard = this.#guard(shard);
    guard.connected();
    if (this.#options.tune === undefined) guard.measure();
  }

  /** Servers that are no longer asked need no probes. */
  #dropGuards(): void {
    const { shards } = this.#topology;
    for (const guard of this.#everyGuard) {
      if (shards.includes(guard.shard)) continue;
      guard.close();
      this.#everyGuard.delete(guard);
      this.#guards.delete(guard.shard);
    }
  }

  #guard(shard: Shard): GuardedShard {
    let guard = this.#guards.get(shard);
    if (guard === undefined) {
      const { nowMs, onEvent } = this.#options;
      guard = new GuardedShard(shard, this.#breaker, nowMs, (name, state, why) => {
        onEvent({ kind: "breaker", shard: name, state, why });
        if (state === "open") this.#topology.suspect();
      });
      this.#guards.set(shard, guard);
      this.#everyGuard.add(guard);
    }
    return guard;
  }

  #createLane({ tag, slot }: LaneTag, index: number): PlacedLane {
    const { prefix, maxCallWeight, maxInFlight, maxWaiting, nowMs, stalls, runDelay, counts, tune } = this.#options;
    const names = createKeyNames(`${prefix}${tag}`);
    let guard: GuardedShard | undefined;
    const lane = new Lane({
      slot,
      names,
      shard: () => {
        const shard = this.#topology.findShard(slot);
        if (shard === undefined) return undefined;
        // Called with every check, and looking a guard up is not free.
        if (guard?.shard !== shard || !guard.inUse) guard = this.#guard(shard);
        return guard;
      },
      starting: () => this.#isStarting(),
      maxCallWeight,
      maxInFlight,
      maxWaiting,
      nowMs,
      stalls,
      runDelay,
      counts,
      onSuspect: () => this.#topology.suspect(),
      onFailure: (shard, error) => this.#options.onEvent({ kind: "failed", shard, error: errorFrom(error) }),
      tune,
    });
    return { lane, names, slot, index, site: this };
  }
}

function moment(): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, 2));
}

/** A lane, and its place. */
export interface PlacedLane {
  readonly lane: Lane;
  readonly names: KeyNames;
  readonly slot: number;
  readonly index: number;
  readonly site: Site;
}
