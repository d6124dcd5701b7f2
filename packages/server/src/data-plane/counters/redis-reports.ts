import type { RedisCounters } from "@sluice/redis";
import type { Logger } from "../../observe/telemetry/logger.ts";
import { redisStatus } from "./redis-status.ts";

const onceInMs = 60_000;
/**
 * After this long without servers, that is reported in any case; most outages are reported sooner, by the failed
 * attempt.
 */
const patienceMs = 5_000;
const maxTraced = 20;

/** Logs about counters on servers, besides single events: once a minute, or once. */
export class RedisReports {
  readonly #store: RedisCounters;
  readonly #log: Logger;
  readonly #openedMs = performance.now();
  readonly #timeouts = new Increase();
  readonly #starved = new Increase();
  #everReady = false;
  #reportedUnreachable = false;

  constructor(store: RedisCounters, log: Logger) {
    this.#store = store;
    this.#log = log;
  }

  /** `deadlineMs` and `servers` are those in force now. */
  look(deadlineMs: number, servers: string): void {
    if (this.#store.ready) this.#everReady = true;
    const { timeouts, starved, stalledMs } = this.#store.stats;
    const late = this.#timeouts.since(timeouts);
    if (late > 0) this.#log.warn("counters.timeouts", { checks: late, deadlineMs });
    const unheard = this.#starved.since(starved);
    if (unheard > 0)
      this.#log.warn("counters.process_starved", { checks: unheard, stalledMs: Math.round(stalledMs), deadlineMs });
    this.#traceShards();
    if (!this.#everReady) this.#reportUnreachable(servers);
  }

  #traceShards(): void {
    if (this.#log.trace === undefined) return;
    const { shards, ...counts } = this.#store.stats;
    const traced = shards.slice(0, maxTraced).map(({ name: shard, cell, connected, roundTripMs, figures }) => {
      return { shard, cell, connected, roundTripMs, calls: figures.calls, failures: figures.failures };
    });
    this.#log.trace("counters.stats", { ...counts, shards: traced });
  }

  #reportUnreachable(servers: string): void {
    if (this.#reportedUnreachable || performance.now() - this.#openedMs < patienceMs) return;
    this.#reportedUnreachable = true;
    this.#log.error("counters.unreachable_at_start", { servers, away: redisStatus(this.#store).away });
  }
}

/** How much a count has grown since it was last reported, once a minute at most. */
class Increase {
  #reported = 0;
  #reportedMs = Number.NEGATIVE_INFINITY;

  /** 0 if there is nothing to report, or not yet. */
  since(count: number): number {
    const nowMs = performance.now();
    if (count === this.#reported || nowMs - this.#reportedMs < onceInMs) return 0;
    const grown = count - this.#reported;
    this.#reported = count;
    this.#reportedMs = nowMs;
    return grown;
  }
}
