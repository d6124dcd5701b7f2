import type { RedisEvent } from "@sluice/redis";
import type { Logger } from "../../observe/telemetry/logger.ts";

/** Logs what happens to counter servers: changes, rather than every attempt; never passwords. */
export interface RedisLog {
  onEvent(event: RedisEvent): void;
}

const linesPerMinute = 30;
const refusalsEveryMs = 60_000;

export function createRedisLog(
  log: Logger,
  listSecrets: () => readonly string[],
  nowMs: () => number = () => performance.now(),
): RedisLog {
  /** Why each server is unreachable; undefined while it is connected. */
  const reasons = new Map<string, string | undefined>();
  const refusals = new Map<string, { loggedMs: number; unlogged: number }>();
  const mayTell = createBudget(nowMs, log);

  function onLost(shard: string, error: Error): void {
    const reason = withoutSecrets(findReason(error), listSecrets());
    const cause = classifyReason(reason);
    if (reasons.get(shard) === cause) return;
    reasons.set(shard, cause);
    if (!mayTell()) return;
    const advice = adviceFor(reason);
    log.error("redis.disconnected", { shard, reason, ...(advice === undefined ? undefined : { advice }) });
  }

  /** Refusals are logged once a minute; lost connections are logged as such. */
  function onRefused(shard: string, { message: reason }: Error): void {
    const code = /^[A-Z]{2,32}(?= )/.exec(reason)?.[0];
    if (code === undefined) return;
    const known = refusals.get(code) ?? { loggedMs: -Infinity, unlogged: 0 };
    if (nowMs() - known.loggedMs < refusalsEveryMs) {
      known.unlogged += 1;
      return;
    }
    if (refusals.size > maxRemembered) refusals.clear();
    refusals.set(code, { loggedMs: nowMs(), unlogged: 0 });
    log.error("redis.call_refused", {
      shard,
      reason: withoutSecrets(reason, listSecrets()),
      ...(known.unlogged > 0 && { sinceThen: known.unlogged }),
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

/** At most this many lines a minute. A flapping server is logged now and then, with how much was left out. */
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

function findReason(error: Error): string {
  // If all addresses of a name refuse, the error has no message.
  const parts =
    error instanceof AggregateError ? (error.errors as unknown[]).filter((one) => one instanceof Error) : [];
  const { code } = error as NodeJS.ErrnoException;
  return parts[0]?.message || error.message || code || error.name;
}

/** A connection that breaks and is then refused, or times out, is lost for one cause. */
function classifyReason(reason: string): string {
  return /ECONN|EPIPE|ETIMEDOUT|EHOSTUNREACH|ENETUNREACH|Socket closed|timeout/i.test(reason) ? "out of reach" : reason;
}

const advices: readonly (readonly [RegExp, string])[] = [
  [
    /^(WRONGPASS|NOAUTH|ERR AUTH)|invalid password/,
    "check REDIS_CLUSTER_USERNAME, and REDIS_CLUSTER_PASSWORD or SLUICE_REDIS_PASSWORD_FILE",
  ],
  [/certificate|self.signed|altname/i, "check SLUICE_REDIS_CA and SLUICE_REDIS_SERVER_NAME"],
  [/ENOTFOUND|EAI_AGAIN/, "the host has no address"],
];

function adviceFor(reason: string): string | undefined {
  return advices.find(([pattern]) => pattern.test(reason))?.[1];
}

/** The most of a reason that is stored and logged: servers send errors of any length. */
const maxReasonLength = 2_000;

/**
 * A text without these secrets, cut if it is long. It examines enough beyond the cut that a secret which begins before
 * it also ends there, and drops as much, because it may be the beginning of another.
 */
export function withoutSecrets(text: string, secrets: readonly string[]): string {
  // The longest first: it may begin with another.
  const known = secrets.filter((secret) => secret !== "").sort((one, other) => other.length - one.length);
  const longest = known[0]?.length ?? 0;
  const looked = text.slice(0, maxReasonLength + longest);
  const redacted = known.reduce((rest, secret) => rest.replaceAll(secret, "[redacted]"), looked);
  if (looked.length === text.length) return redacted;
  const kept = redacted.slice(0, Math.min(maxReasonLength, Math.max(redacted.length - longest, 0)));
  return `${kept}… (${text.length} characters)`;
}
