import { createClient } from "@redis/client";
import { RedisCounters } from "@sluice/redis";
import { RateLimiterRedis, type RateLimiterRes } from "rate-limiter-flexible";
import { createLimiter, type Decision, LeasedCounters } from "sluice";
import type { LeaseAnswer, LeaseAsk, ResolvedLimit } from "sluice/store";
import type { Contender, Verdict } from "./drive.ts";
import { createRequest, limits, renderTenant, type WhaleWay, whale, whaleNumber } from "./workload.ts";

/** Checks never time out here: on a busy machine, timeouts would turn waiting into answers that cost nothing. */
const patient = { deadlineMs: 10_000 };

/** The store's calls so far, and the decisions made without it. */
export interface StoreUsage {
  /** Calls that were sent, however many checks each contained. */
  readonly calls: number;
  /** The store's decisions about the whale, and its leases. */
  readonly whaleTakes: number;
  readonly whaleLeases: number;
  /** Decisions by leases, and the current number of leases. */
  readonly local: number;
  readonly leases: number;
}

/** Counters on a server that record their calls. */
class WatchedCounters extends RedisCounters {
  takes = 0;
  whaleTakes = 0;
  whaleLeases = 0;

  /** Each check here has one limit. */
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
  usage(): StoreUsage;
  close(): Promise<void>;
}

export interface ContenderOptions {
  readonly kind: Kind;
  readonly url: string;
  /** The prefix of keys, which keeps runs separate. */
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
    ask: (number) => limiter.check(createRequest(number, way)),
    judge({ allowed, degraded }: Decision): Verdict {
      if (degraded !== undefined) return "undecided";
      return allowed ? "allowed" : "denied";
    },
    asked: () => watched.takes,
    usage: () => ({
      calls: watched.stats.calls,
      whaleTakes: watched.whaleTakes,
      whaleLeases: watched.whaleLeases,
      local: leased?.stats.local ?? 0,
      leases: leased?.stats.leases ?? 0,
    }),
    close: () => limiter.close(),
  };
}

/** RateLimiterRedis over the client that Sluice uses, set up as Sluice does: fixed windows of a second, with a separate one for the whale. */
async function createFlexible({ url, prefix }: ContenderOptions): Promise<RunningContender> {
  const client = createClient({ url, RESP: 2, disableOfflineQueue: true, commandOptions: { timeout: 0 } });
  client.on("error", (error) => {
    console.error(error);
  });
  await client.connect();
  let calls = 0;
  const createLimiterFor = (name: string, points: number): RateLimiterRedis => {
    const options = { storeClient: client, useRedisPackage: true, keyPrefix: `${prefix}${name}`, points, duration: 1 };
    return new RateLimiterRedis(options);
  };
  const subjectLimiter = createLimiterFor("e", limits.subject);
  const whaleLimiter = createLimiterFor("w", limits.whale);
  return {
    name: "flexible",
    ask: (number) => {
      calls += 1;
      return (number === whaleNumber ? whaleLimiter : subjectLimiter).consume(renderTenant(number));
    },
    judge: ({ remainingPoints }: RateLimiterRes): Verdict => (remainingPoints > 0 ? "allowed" : "denied"),
    usage: () => ({ calls, whaleTakes: 0, whaleLeases: 0, local: 0, leases: 0 }),
    close: async () => client.destroy(),
  };
}
