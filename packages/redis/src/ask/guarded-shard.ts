import type { Peer } from "sluice/internal";
import { CircuitBreaker, type CircuitBreakerOptions, type CircuitState } from "sluice/store";
import type { Shard } from "../topology/topology.ts";
import { within } from "../topology/within.ts";
import { ServerClock } from "./server-clock.ts";
import { LoadSampler, type ServerLoad } from "./server-load.ts";
import { createShardFigures, type ShardFigures } from "./shard-figures.ts";

/** Monotonic milliseconds. */
export type NowMs = () => number;

const defaultProbeEveryMs = 5000;
/** How long a probe may take. */
const probeWithinMs = 1000;
const eagerAfterMs = 1000;

/** A server with its breaker and its clock. */
export class GuardedShard implements Peer {
  readonly shard: Shard;
  readonly clock: ServerClock = new ServerClock();
  readonly figures: ShardFigures = createShardFigures();
  readonly #breaker: CircuitBreaker;
  readonly #nowMs: NowMs;
  #probeEveryMs: number;
  #timer: NodeJS.Timeout | undefined;
  /** When the pending call of `measure` began. */
  #measuringMs: number | undefined;
  readonly #sampler = new LoadSampler();
  #sampling = false;
  #load: ServerLoad | undefined;
  #connections = 0;
  /** When the breaker left closed; undefined while it is. */
  #openedMs: number | undefined;
  #closed = false;

  constructor(
    shard: Shard,
    options: CircuitBreakerOptions,
    nowMs: NowMs,
    onChange: (shard: string, state: CircuitState, why: string) => void,
  ) {
    this.shard = shard;
    this.#nowMs = nowMs;
    this.#probeEveryMs = options.probeEveryMs ?? defaultProbeEveryMs;
    this.#breaker = new CircuitBreaker({
      ...options,
      onChange: (state, why) => {
        if (state === "open") {
          if (this.#openedMs === undefined) this.figures.breakerOpened += 1;
          this.#openedMs ??= nowMs();
          // A connection that stopped answering may be half open, which only a new one can show.
          shard.renew();
          this.#probeLater();
        } else if (state === "closed") {
          this.#openedMs = undefined;
          this.figures.breakerClosed += 1;
        }
        onChange(shard.name, state, why);
      },
    });
  }

  configure(options: CircuitBreakerOptions): void {
    this.#breaker.configure(options);
    this.#probeEveryMs = options.probeEveryMs ?? defaultProbeEveryMs;
    // A waiting probe goes by the previous delay.
    if (!this.closed) this.#probeLater();
  }

  get state(): CircuitState {
    return this.#breaker.state;
  }

  /** Whether calls are admitted. While they are not, only the probe uses the socket. */
  get closed(): boolean {
    return this.#breaker.state === "closed";
  }

  /** How many connections there have been. While it stays the same, the server remembers what it answered. */
  get connections(): number {
    return this.#connections;
  }

  /** The generation that calls are settled under. */
  get generation(): number {
    return this.#breaker.generation;
  }

  /** Whether it has answered a call lately. */
  get isHeard(): boolean {
    return this.#breaker.isHeard(this.#nowMs());
  }

  succeed(generation: number): void {
    this.#breaker.succeed(this.#nowMs(), generation);
  }

  fail(generation: number): void {
    this.#breaker.fail(this.#nowMs(), generation);
  }

  /**
   * Called when there is a connection again. One made as soon as the breaker opens proves nothing: a server that is too
   * slow still accepts connections.
   */
  connected(): void {
    this.#connections += 1;
    const nowMs = this.#nowMs();
    if (this.#openedMs === undefined || nowMs - this.#openedMs < eagerAfterMs) return;
    if (this.#breaker.admit(nowMs, true) === "probe") this.#probe();
  }

  /** How long the last exchange took, or how long one has gone unanswered if that is longer. */
  get roundTripMs(): number | undefined {
    const { roundTripMs } = this.figures;
    if (this.#measuringMs === undefined) return roundTripMs;
    return Math.max(this.#nowMs() - this.#measuringMs, roundTripMs ?? 0);
  }

  /**
   * Asks the server for its time, and learns its clock and latency. Does not affect the breaker, and asks once at a
   * time, so a server that does not answer has one question waiting.
   */
  measure(): void {
    if (this.#measuringMs !== undefined || !this.shard.ready) return;
    const sentMs = this.#nowMs();
    this.#measuringMs = sentMs;
    this.shard
      .send(0, ["TIME"])
      .then(
        (reply) => {
          const receivedMs = this.#nowMs();
          const [seconds, microseconds] = reply as [string, string];
          this.clock.learn(Number(seconds) * 1000 + Number(microseconds) / 1000, sentMs, receivedMs);
          this.figures.roundTripMs = receivedMs - sentMs;
        },
        // Lost connections are reported separately.
        () => undefined,
      )
      .finally(() => {
        this.#measuringMs = undefined;
      });
  }

  /** Its load at the last sample; undefined if it did not answer, or may not be asked. */
  get load(): ServerLoad | undefined {
    return this.shard.ready ? this.#load : undefined;
  }

  /** Asks the server about its load. Like `measure`, at most one question waits. */
  sampleLoad(): void {
    if (this.#sampling || !this.shard.ready) return;
    this.#sampling = true;
    this.shard
      .send(0, ["INFO"])
      .then(
        (reply) => {
          this.#load = this.#sampler.read(String(reply), this.#nowMs());
        },
        () => {
          this.#load = undefined;
        },
      )
      .finally(() => {
        this.#sampling = false;
      });
  }

  /** True until it is closed. */
  get inUse(): boolean {
    return !this.#closed;
  }

  /** Stops probing. */
  close(): void {
    this.#closed = true;
    clearTimeout(this.#timer);
  }

  /**
   * The breaker is probed by a dedicated command, so that no request pays for it, and a node without traffic recovers
   * too.
   */
  #probeLater(): void {
    clearTimeout(this.#timer);
    if (this.#closed) return;
    // A little later than the breaker requires, so that the probe is not refused and put off by another turn.
    this.#timer = setTimeout(() => {
      if (this.#breaker.admit(this.#nowMs()) === "probe") this.#probe();
      else if (!this.closed) this.#probeLater();
    }, this.#probeEveryMs + 5);
    this.#timer.unref();
  }

  #probe(): void {
    const { generation } = this.#breaker;
    within(this.shard.send(0, ["PING"]), probeWithinMs).then(
      () => this.succeed(generation),
      () => {
        this.fail(generation);
        this.#probeLater();
      },
    );
  }
}

export function breakerIsOpen({ name }: Shard): string {
  return `the breaker of ${name} is open`;
}
