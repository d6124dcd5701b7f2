import { createClient } from "@redis/client";
import { RedisCounters } from "@sluice/redis";
import { RateLimiterRedis, type RateLimiterRes } from "rate-limiter-flexible";
import {
  createLimiter,
  type Decision,
  type LeaseAnswer,
  type LeaseAsk,
  LeasedCounters,
  type ResolvedLimit,
} from "sluice";
import type { Contender, Verdict } from "./drive.ts";
import { limits, requestOf, tenantOf, type WhaleWay, whale, whaleNumber } from "./workload.ts";

/** Checks never give up here: a machine that is busy elsewhere would turn waiting into answers that cost nothing. */
const patient = { deadlineMs: 10_000 };

/** What the store was asked so far, and what was decided without it. */
export interface StoreFigures {
  /** Calls that were sent, whatever travelled in them. */
  readonly calls: number;
  /** Decisions about the whale that it was asked for, and leases. */
  readonly whaleTakes: number;
  readonly whaleLeases: number;
  /** Decisions by leases, and how many leases there are now. */
  readonly local: number;
  readonly leases: number;
}

/** Counters on a server that tell what they were asked. */
class WatchedCounters extends RedisCounters {
  takes = 0;
  whaleTakes = 0;
  whaleLeases = 0;

  /** What is asked here is one limit each time. */
  override takeOne<T>(...asked: Parameters<typeof RedisCounters.prototype.takeOne<T>>): Promise<T> {
    const [, , subject] = asked;
    this.takes += 1;
    if (subject === whale) this.whaleTakes += 1;
    return super.takeOne(...asked);
  }

  override lease(asked: readonly ResolvedLimit[], ask: LeaseAsk): Promise<LeaseAnswer> {
    if (asked[0]!.subject === whale) this.whaleLeases += 1;
    return super.lease(asked, ask);
  }
}

/** A limiter with leases, the same without, and another one; all on the same server. */
export const kinds = ["leased", "exact", "flexible"] as const;
export type Kind = (typeof kinds)[number];

export interface RunningContender extends Contender {
  figures(): StoreFigures;
  close(): Promise<void>;
}

export interface ContenderOptions {
  readonly kind: Kind;
  readonly url: string;
  /** What keys begin with, so that runs do not meet. */
  readonly prefix: string;
  readonly way: WhaleWay;
  readonly policies: Readonly<Record<string, unknown>>;
}

export function createContender(options: ContenderOptions): Promise<RunningContender> {
  return options.kind === "flexible" ? createFlexible(options) : createOurs(options);
}

async function createOurs({ kind, url, prefix, way, policies }: ContenderOptions): Promise<RunningContender> {
  const watched = new WatchedCounters({ servers: url, prefix, ...patient });
  await watched.connected();
  const leased = kind === "leased" ? new LeasedCounters(watched) : undefined;
  const limiter = createLimiter({ policies, counters: leased ?? watched });
  return {
    name: kind,
    ask: (number) => limiter.check(requestOf(number, way)),
    verdictOf({ allowed, degraded }: Decision): Verdict {
      if (degraded !== undefined) return "undecided";
      return allowed ? "allowed" : "denied";
    },
    asked: () => watched.takes,
    figures: () => ({
      calls: watched.stats.calls,
      whaleTakes: watched.whaleTakes,
      whaleLeases: watched.whaleLeases,
      local: leased?.stats.local ?? 0,
      leases: leased?.stats.leases ?? 0,
    }),
    close: () => limiter.close(),
  };
}

/** RateLimiterRedis over the client that Sluice uses, set up as Sluice does: fixed windows of a second, the whale's of its own. */
async function createFlexible({ url, prefix }: ContenderOptions): Promise<RunningContender> {
  const client = createClient({ url, RESP: 2, disableOfflineQueue: true, commandOptions: { timeout: 0 } });
  client.on("error", (error) => {
    console.error(error);
  });
  await client.connect();
  let calls = 0;
  const limiterOf = (name: string, points: number): RateLimiterRedis => {
    const options = { storeClient: client, useRedisPackage: true, keyPrefix: `${prefix}${name}`, points, duration: 1 };
    return new RateLimiterRedis(options);
  };
  const everybody = limiterOf("e", limits.subject);
  const theWhale = limiterOf("w", limits.whale);
  return {
    name: "flexible",
    ask: (number) => {
      calls += 1;
      return (number === whaleNumber ? theWhale : everybody).consume(tenantOf(number));
    },
    verdictOf: ({ remainingPoints }: RateLimiterRes): Verdict => (remainingPoints > 0 ? "allowed" : "denied"),
    figures: () => ({ calls, whaleTakes: 0, whaleLeases: 0, local: 0, leases: 0 }),
    close: async () => client.destroy(),
  };
}
