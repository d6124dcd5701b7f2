import type { RedisCounters, RedisCountersStats } from "@sluice/redis";
import type { LeasedCountersOptions } from "sluice";
import { saturatedFrom } from "./load-reports.ts";

type Asked = Parameters<NonNullable<LeasedCountersOptions["strainedDecisions"]>>[0];
type Shard = Pick<RedisCountersStats["shards"][number], "name" | "cell" | "load">;

/** A server that was relieved by leases stays strained: it would be saturated again without them. */
const strainedForMs = 5 * 60_000;
/** What a lease's call takes, in decisions: this many if many of them travel together, */
const decisionsInLargeCalls = 7;
/** and this many if no more than `smallCall` do. */
const decisionsInSmallCalls = 4;
const smallCall = 16;

/**
 * Which counter servers are short of time: those that were saturated in the last five minutes. Counters on them are
 * leased as soon as a lease takes less of the server's time than the decisions that it saves.
 */
export class StrainedServers {
  readonly #nowMs: () => number;
  /** Until when each is strained. */
  readonly #untilMs = new Map<string, number>();
  #calls = 0;
  #questions = 0;
  #decisions = decisionsInLargeCalls;

  constructor(nowMs: () => number = () => performance.now()) {
    this.#nowMs = nowMs;
  }

  look({
    calls,
    questions,
    shards,
  }: Pick<RedisCountersStats, "calls" | "questions"> & { readonly shards: readonly Shard[] }): void {
    const nowMs = this.#nowMs();
    for (const shard of shards)
      if ((shard.load?.cpu ?? 0) > saturatedFrom) this.#untilMs.set(shardKey(shard), nowMs + strainedForMs);
    for (const [key, untilMs] of this.#untilMs) if (nowMs >= untilMs) this.#untilMs.delete(key);
    const perCall = (questions - this.#questions) / (calls - this.#calls);
    this.#decisions = perCall <= smallCall ? decisionsInSmallCalls : decisionsInLargeCalls;
    this.#calls = calls;
    this.#questions = questions;
  }

  /** For `LeasedCounters`: from how many decisions in the time of a lease a counter is hot, on a strained server. */
  findDecisions(asked: Asked, counters: Pick<RedisCounters, "findShard">): number | undefined {
    if (this.#untilMs.size === 0) return undefined;
    const shard = counters.findShard(asked);
    return shard !== undefined && this.#untilMs.has(shardKey(shard)) ? this.#decisions : undefined;
  }
}

function shardKey({ name, cell = "" }: Pick<Shard, "name" | "cell">): string {
  return `${cell} ${name}`;
}
