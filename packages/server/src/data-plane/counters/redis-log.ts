import type { RedisEvent } from "@sluice/redis";
import type { Logger } from "../../observe/telemetry/logger.ts";

/** Tells of what happens to counter servers: of changes, and not of every attempt; never of passwords. */
export interface RedisLog {
  onEvent(event: RedisEvent): void;
}

const linesPerMinute = 30;
const refusalsEveryMs = 60_000;

export function createRedisLog(
  log: Logger,
  secrets: readonly string[],
  nowMs: () => number = () => performance.now(),
): RedisLog {
  /** Why each server is out of reach; undefined while it is connected. */
  const reasons = new Map<string, string | undefined>();
  const refusals = new Map<string, { toldMs: number; untold: number }>();
  const mayTell = createBudget(nowMs, log);

  function onLost(shard: string, error: Error): void {
    const reason = withoutSecrets(reasonOf(error), secrets);
    const cause = causeOf(reason);
    if (reasons.get(shard) === cause) return;
    reasons.set(shard, cause);
    if (!mayTell()) return;
    const advice = adviceFor(reason);
    log.error("redis.disconnected", { shard, reason, ...(advice === undefined ? undefined : { advice }) });
  }

  /** What a server refuses is told once a minute; a connection that was lost is told of as such. */
  function onRefused(shard: string, { message: reason }: Error): void {
    const code = /^[A-Z]{2,32}(?= )/.exec(reason)?.[0];
    if (code === undefined) return;
    const known = refusals.get(code) ?? { toldMs: -Infinity, untold: 0 };
    if (nowMs() - known.toldMs < refusalsEveryMs) {
      known.untold += 1;
      return;
    }
    if (refusals.size > maxRemembered) refusals.clear();
    refusals.set(code, { toldMs: nowMs(), untold: 0 });
    log.error("redis.call_refused", {
      shard,
      reason: withoutSecrets(reason, secrets),
      ...(known.untold > 0 && { sinceThen: known.untold }),
    });
  }

  return {
    onEvent(event): void {
      if (reasons.size > maxRemembered) reasons.clear();
      switch (event.kind) {
        case "connected":
          reasons.set(event.shard, undefined);
          if (mayTell()) log.info("redis.connected", { shard: event.shard });
          break;
        case "disconnected":
          onLost(event.shard, event.error);
          break;
        case "moved":
          if (mayTell()) log.info("redis.moved", { what: event.description });
          break;
        case "failed":
          onRefused(event.shard, event.error);
          break;
        case "breaker": {
          const { shard, state, why } = event;
          if (state === "half_open") log.debug("redis.breaker_probed", { shard, why });
          else if (!mayTell()) break;
          else if (state === "open") log.error("redis.breaker_opened", { shard, why });
          else log.info("redis.breaker_closed", { shard, why });
        }
      }
    },
  };
}

const maxRemembered = 10_000;

/** So many lines a minute. What goes up and down without end is told of now and then, with how much was left out. */
function createBudget(nowMs: () => number, log: Logger): () => boolean {
  let minute = -Infinity;
  let lines = 0;
  return () => {
    if (nowMs() - minute >= 60_000) {
      if (lines > linesPerMinute) log.warn("redis.events_omitted", { leftOut: lines - linesPerMinute });
      minute = nowMs();
      lines = 0;
    }
    lines += 1;
    return lines <= linesPerMinute;
  };
}

function reasonOf(error: Error): string {
  // Several addresses of one name that all refuse come as an error without a message of its own.
  const parts =
    error instanceof AggregateError ? (error.errors as unknown[]).filter((one) => one instanceof Error) : [];
  const { code } = error as NodeJS.ErrnoException;
  return parts[0]?.message || error.message || code || error.name;
}

/** A connection that breaks and then is refused, or times out, is lost for one cause. */
function causeOf(reason: string): string {
  return /ECONN|EPIPE|ETIMEDOUT|EHOSTUNREACH|ENETUNREACH|Socket closed|timeout/i.test(reason) ? "out of reach" : reason;
}

const advices: readonly (readonly [RegExp, string])[] = [
  [/^(WRONGPASS|NOAUTH|ERR AUTH)|invalid password/, "look at REDIS_CLUSTER_USERNAME and REDIS_CLUSTER_PASSWORD"],
  [/certificate|self.signed|altname/i, "look at SLUICE_REDIS_CA and SLUICE_REDIS_SERVER_NAME"],
  [/ENOTFOUND|EAI_AGAIN/, "the host has no address"],
];

function adviceFor(reason: string): string | undefined {
  return advices.find(([pattern]) => pattern.test(reason))?.[1];
}

/** The most of a reason that is kept and logged: servers send errors of any length. */
const maxReasonLength = 2_000;

/**
 * A text without these secrets, and without its end where it is long. So much more than is kept is looked at that a secret which begins
 * in it also ends in it; and as much is dropped of what was cut, because it may be the beginning of another.
 */
export function withoutSecrets(text: string, secrets: readonly string[]): string {
  // The longest first: it may begin with another.
  const known = secrets.filter((secret) => secret !== "").sort((one, other) => other.length - one.length);
  const longest = known[0]?.length ?? 0;
  const looked = text.slice(0, maxReasonLength + longest);
  const told = known.reduce((rest, secret) => rest.replaceAll(secret, "[redacted]"), looked);
  if (looked.length === text.length) return told;
  const kept = told.slice(0, Math.min(maxReasonLength, Math.max(told.length - longest, 0)));
  return `${kept}… (${text.length} characters)`;
}
