import { isDeepStrictEqual } from "node:util";
import { RedisCounters, type RedisServers, renderServers } from "@sluice/redis";
import type { HotKeys } from "sluice";
import type { RateLimitsRuntime } from "sluice/policy-text";
import type { Logger } from "../../observe/telemetry/logger.ts";
import type { Settings } from "../../settings/settings.ts";
import { concernsAbout, inspectServer, parseShardName } from "./inspect-server.ts";
import { openLeases } from "./open-leases.ts";
import { planCounters, type RedisPlan } from "./plan-counters.ts";
import { readCells, type ServedCell, withTlsFiles } from "./read-redis-files.ts";
import { createRedisLog, withoutSecrets } from "./redis-log.ts";
import { redisStatus } from "./redis-status.ts";
import type { RunningCounters } from "./running-counters.ts";

const lookEveryMs = 1_000;
const inspectWithinMs = 1_000;
/** After so long without servers that is said, whatever they are; most are told of sooner, by the attempt that failed. */
const patienceMs = 5_000;
const maxInspected = 10_000;
/** Every so many looks servers are asked for their time, which tells how quick they are. */
const measureEvery = 5;
const maxTraced = 20;
const timeoutsEveryMs = 60_000;

/**
 * Counters on servers, which are looked after: connected to, inspected, probed, and exchanged for others. Busy ones are decided
 * from leases.
 */
export async function openRedisCounters(
  first: RedisPlan,
  settings: Settings,
  log: Logger,
  hotKeys: HotKeys,
): Promise<RunningCounters> {
  const placed = await placeServers(first, settings);
  let { servers, kindKnown } = placed;
  const cells = await readCells(settings);
  const secrets = (): readonly string[] => secretsOf(servers, cells, settings);
  const store = createCounters(first, servers, cells, settings, log);
  store.open();
  const leases = openLeases(store, settings, log, hotKeys);
  const openedMs = performance.now();
  const inspected = new Set<string>();
  let everReady = false;
  let stopped = false;
  let looking = false;
  let changing: Promise<unknown> = Promise.resolve();

  let { deadlineMs, breaker } = first;
  log.info({ servers: renderServers(servers), cells: cells.length, deadlineMs }, "counters are on servers");
  const timer = setInterval(() => void look(), lookEveryMs);
  timer.unref();

  /** One change of servers after the other. */
  function change<T>(work: () => Promise<T>): Promise<T> {
    const done = changing.then(work);
    changing = done.catch(() => undefined);
    return done;
  }

  /** What has to be done now and then, beside the requests. */
  async function look(): Promise<void> {
    if (looking || stopped) return;
    looking = true;
    try {
      if (!kindKnown) await change(learnKind);
      if (store.ready) everReady = true;
      leases.look();
      looks += 1;
      if (looks % measureEvery === 0) store.measure();
      tellOfTimeouts();
      tellOfStarvation();
      traceShards();
      if (!everReady) tellOfPatience();
      await inspectNewShards();
    } catch (error) {
      log.debug({ reason: withoutSecrets(String(error), secrets()) }, "counter servers could not be looked at");
    } finally {
      looking = false;
    }
  }

  let starvedTold = 0;
  let starvedToldMs = -Infinity;
  function tellOfStarvation(): void {
    const { starved, stalledMs } = store.stats;
    if (starved === starvedTold || performance.now() - starvedToldMs < timeoutsEveryMs) return;
    log.warn(
      { checks: starved - starvedTold, stalledMs: Math.round(stalledMs), deadlineMs },
      "this process was short of processor time and could not hear the counters; on_failure answered these checks",
    );
    starvedTold = starved;
    starvedToldMs = performance.now();
  }

  let timeoutsTold = 0;
  let timeoutsToldMs = -Infinity;
  function tellOfTimeouts(): void {
    const { timeouts } = store.stats;
    if (timeouts === timeoutsTold || performance.now() - timeoutsToldMs < timeoutsEveryMs) return;
    log.warn(
      { checks: timeouts - timeoutsTold, deadlineMs },
      "the counters did not answer in time; on_failure answered these checks",
    );
    timeoutsTold = timeouts;
    timeoutsToldMs = performance.now();
  }

  let looks = 0;
  function traceShards(): void {
    if (log.trace === undefined) return;
    const { shards, ...counts } = store.stats;
    const traced = shards.slice(0, maxTraced).map(({ name: shard, cell, connected, roundTripMs, figures }) => {
      return { shard, cell, connected, roundTripMs, calls: figures.calls, failures: figures.failures };
    });
    log.trace({ ...counts, shards: traced }, "counter servers, and what was asked of them");
  }

  let toldOfPatience = false;
  function tellOfPatience(): void {
    if (toldOfPatience || performance.now() - openedMs < patienceMs) return;
    toldOfPatience = true;
    log.error(
      { servers: renderServers(servers), away: redisStatus(store).away },
      "the counters could not be reached yet; checks are answered by on_failure, and connecting goes on",
    );
  }

  /** Servers that were connected to while everything was being closed are closed too. */
  async function goOver(next: RedisServers): Promise<void> {
    await store.useServers(next);
    if (stopped) await store.close();
  }

  async function learnKind(): Promise<void> {
    const kind = await askKind(servers);
    if (kind === undefined || stopped) return;
    if (kind !== servers.kind) {
      const next = asKind(servers, kind, first.servers);
      await goOver(next);
      servers = next;
    }
    kindKnown = true;
  }

  async function inspectNewShards(): Promise<void> {
    const { shards } = store.stats;
    if (inspected.size > maxInspected) inspected.clear();
    for (const { name, cell, connected } of shards) {
      const key = `${cell ?? ""} ${name}`;
      if (!connected || inspected.has(key) || stopped) continue;
      inspected.add(key);
      await inspect(name, cells.find((one) => one.name === cell)?.servers ?? servers);
    }
    const most = settings.redisMaxConnections;
    if (most === undefined || shards.length <= most || inspected.has("")) return;
    inspected.add("");
    log.warn(
      { servers: shards.length, most },
      "there are more counter servers than REDIS_MAX_CONN, and a connection to each is needed",
    );
  }

  async function inspect(shard: string, at: RedisServers): Promise<void> {
    const facts = await inspectServer(parseShardName(shard), at, inspectWithinMs);
    if (facts === undefined) return;
    log.debug({ shard, ...facts }, "a counter server told of itself");
    for (const concern of concernsAbout(facts, at.kind))
      log.warn({ shard, product: facts.product, concern }, "a counter server may surprise");
  }

  async function refresh(runtime: RateLimitsRuntime | undefined): Promise<void> {
    const plan = planCounters(settings, runtime);
    if (plan.kind === "memory")
      return log.warn(
        {},
        "the policy files name no servers for counters any more; that takes effect at the next start",
      );
    if (plan.deadlineMs !== deadlineMs || !isDeepStrictEqual(plan.breaker, breaker)) {
      ({ deadlineMs, breaker } = plan);
      store.useTimes({ deadlineMs, breaker });
      log.info({ deadlineMs, ...breaker }, "the deadline or the health check of counters has changed, and applies now");
    }
    const wanted = await withTlsFiles(
      plan.ofUnknownKind ? asKind(plan.servers, servers.kind, plan.servers) : plan.servers,
      settings,
    );
    if (isDeepStrictEqual(wanted, servers)) return;
    const [from, to] = [renderServers(servers), renderServers(wanted)];
    try {
      await goOver(wanted);
    } catch {
      log.error({ from, to }, "the new counter servers cannot be reached, so the old ones stay; SIGHUP tries again");
      return;
    }
    servers = wanted;
    if (from === to)
      log.info({ servers: to }, "counter servers are connected to anew, with other certificates or timeouts");
    else log.info({ from, to }, "counters are on other servers now; the old ones finish what they were asked");
  }

  return {
    store: leases.store,
    hotKeys,
    get where(): string {
      return renderServers(servers);
    },
    figures: { redis: () => ({ ...store.stats, ready: store.ready }), leases: leases.figures },
    status: () => redisStatus(store, leases.status()),
    refresh: (runtime) =>
      change(async () => {
        if (!stopped) await refresh(runtime);
      }).catch((error: unknown) =>
        log.error({ reason: withoutSecrets(String(error), secrets()) }, "the counters stay where they are"),
      ),
    drain: leases.drain,
    stop(): void {
      stopped = true;
      clearInterval(timer);
    },
  };
}

/** Counters on servers for a command that asks a few times, and looks after nothing. */
export async function createRedisCounters(plan: RedisPlan, settings: Settings, log: Logger): Promise<RedisCounters> {
  const { servers } = await placeServers(plan, settings);
  return createCounters(plan, servers, await readCells(settings), settings, log);
}

function createCounters(
  { deadlineMs, breaker }: RedisPlan,
  servers: RedisServers,
  cells: readonly ServedCell[],
  settings: Settings,
  log: Logger,
): RedisCounters {
  const { redisPrefix: prefix, redisLanes: lanes } = settings;
  const redisLog = createRedisLog(log, secretsOf(servers, cells, settings));
  return new RedisCounters({ servers, prefix, lanes, deadlineMs, breaker, cells, onEvent: redisLog.onEvent });
}

/** The servers of a plan, with their certificates, and of the right kind if that can be told at once. */
async function placeServers(
  { servers, ofUnknownKind }: RedisPlan,
  settings: Settings,
): Promise<{ readonly servers: RedisServers; readonly kindKnown: boolean }> {
  if (!ofUnknownKind) return { servers: await withTlsFiles(servers, settings), kindKnown: true };
  const cluster = await withTlsFiles(asKind(servers, "cluster", servers), settings);
  const kind = await askKind(cluster);
  return { servers: asKind(cluster, kind ?? "cluster", servers), kindKnown: kind !== undefined };
}

async function askKind(servers: RedisServers): Promise<"standalone" | "cluster" | undefined> {
  const facts = await inspectServer(servers.addresses[0]!, servers, inspectWithinMs);
  if (facts === undefined) return undefined;
  return facts.clustered ? "cluster" : "standalone";
}

/** A server on its own has the database that was asked for; a cluster has one only. */
function asKind(servers: RedisServers, kind: RedisServers["kind"], { database }: RedisServers): RedisServers {
  return { ...servers, kind, database: kind === "cluster" ? undefined : database };
}

function secretsOf(servers: RedisServers, cells: readonly ServedCell[], settings: Settings): readonly string[] {
  const all = [servers, ...cells.map((cell) => cell.servers)];
  return [settings.redisPassword, settings.redisSentinelPassword, ...all.map(({ password }) => password)].filter(
    (secret) => secret !== undefined,
  );
}
