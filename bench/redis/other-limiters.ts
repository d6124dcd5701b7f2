import { createHash } from "node:crypto";
import { createClient } from "@redis/client";
import { type RedisReply, RedisStore } from "rate-limit-redis";
import { RateLimiterRedis, type RateLimiterRes } from "rate-limiter-flexible";

/** What every limiter is asked to do. */
export interface Workload {
  /** The key of a check, by its number. */
  readonly renderUser: (number: number) => string;
  /** A limit that no run reaches. */
  readonly perMinute: number;
  readonly lifeMs: number;
}

const minuteMs = 60_000;

/** The parts of a client that are used here. */
interface Client {
  sendCommand(command: string[]): Promise<unknown>;
  destroy(): void;
}

/** The client that Sluice uses, set up as Sluice does. */
export async function connect(url: string): Promise<Client> {
  const client = createClient({ url, RESP: 2, disableOfflineQueue: true, commandOptions: { timeout: 0 } });
  client.on("error", (error) => {
    console.error(error);
  });
  await client.connect();
  return client;
}

/**
 * The same decision for one key: arrival times in units of 2^-20 ms by the server's clock, on a circle of 99 days that
 * keeps them exact in Lua's numbers.
 *
 * KEYS[1]: the counter. ARGV: the cost and the tolerance in units, life in ms.
 * Returns whether it was taken, and how far ahead of now the counter was found.
 */
const gcraScript = `
local span = 8589933 * 1048576000
local time = redis.call('TIME')
local now = time[1] % 8589933 * 1048576000 + math.floor(time[2] * 1048.576)
local ahead = 0
local stored = redis.call('GET', KEYS[1])
if stored then
  ahead = (stored - now) % span
  if ahead > 0.75 * span then ahead = 0 end
end
local after = ahead + ARGV[1]
if after > ARGV[2] + 0 then return { 0, ahead } end
redis.call('SET', KEYS[1], string.format('%.0f', (now + after) % span), 'PX', ARGV[3])
return { 1, ahead }
`;

interface PlainDecision {
  readonly allowed: boolean;
  readonly remaining: number;
  readonly retryAfterMs: number;
}

export async function singleEvalsha(
  client: Client,
  { renderUser, perMinute, lifeMs }: Workload,
): Promise<(number: number) => Promise<PlainDecision>> {
  const unitsPerMs = 2 ** 20;
  const worth = (minuteMs / perMinute) * unitsPerMs;
  const tolerance = minuteMs * unitsPerMs;
  const digest = createHash("sha1").update(gcraScript).digest("hex");
  const [worthText, toleranceText, lifeText] = [String(worth), String(tolerance), String(lifeMs)];
  await client.sendCommand(["SCRIPT", "LOAD", gcraScript]);
  return async (number) => {
    const key = `e:plain_gcra:${renderUser(number)}`;
    const call = ["EVALSHA", digest, "1", key, worthText, toleranceText, lifeText];
    const [taken, ahead] = (await client.sendCommand(call)) as [number, number];
    const after = ahead + worth;
    return taken === 1
      ? { allowed: true, remaining: Math.floor((tolerance - after) / worth), retryAfterMs: 0 }
      : { allowed: false, remaining: 0, retryAfterMs: Math.ceil((after - tolerance) / unitsPerMs) };
  };
}

export function rateLimiterFlexible(
  client: Client,
  { renderUser, perMinute, lifeMs }: Workload,
): (number: number) => Promise<RateLimiterRes> {
  const theirs = new RateLimiterRedis({
    storeClient: client,
    useRedisPackage: true,
    keyPrefix: "f:flexible__",
    points: perMinute,
    duration: lifeMs / 1000,
  });
  return (number) => theirs.consume(renderUser(number));
}

type RedisStoreAnswer = Awaited<ReturnType<RedisStore["increment"]>>;

export async function rateLimitRedis(
  client: Client,
  { renderUser, lifeMs }: Workload,
): Promise<(number: number) => Promise<RedisStoreAnswer>> {
  const theirs = new RedisStore({
    prefix: "r:rate_redis:",
    sendCommand: (...command) => client.sendCommand(command) as Promise<RedisReply>,
  });
  await theirs.init({ windowMs: lifeMs } as Parameters<RedisStore["init"]>[0]);
  return (number) => theirs.increment(renderUser(number));
}
