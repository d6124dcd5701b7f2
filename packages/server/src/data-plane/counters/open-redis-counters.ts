import { isDeepStrictEqual } from "node:util";
import { RedisCounters, type RedisServers, renderServers } from "@sluice/redis";
import type { CounterStore, HotKeys, LeasedCountersOptions } from "sluice";
import type { RateLimitsRuntime } from "sluice/policy-text";
import type { Logger } from "../../observe/telemetry/logger.ts";
import { findPasswordFile } from "../../settings/password-files.ts";
import type { Settings } from "../../settings/settings.ts";
import { LoadReports } from "./load-reports.ts";
import { openLeases, type RunningLeases } from "./open-leases.ts";
import { asKind, askKind, type PlacedServers, placeServers } from "./place-servers.ts";
import { planCounters, type RedisPlan } from "./plan-counters.ts";
import { readCells, type ServedCell, withTlsFiles } from "./read-redis-files.ts";
import { createRedisLog, withoutSecrets } from "./redis-log.ts";
import { RedisReports } from "./redis-reports.ts";
import { redisStatus } from "./redis-status.ts";
import type { CountersStatus, RunningCounters } from "./running-counters.ts";
import { ShardInspector } from "./shard-inspector.ts";
import { StrainedServers } from "./strained-servers.ts";

const lookEveryMs = 1_000;
/** Servers are asked for their time, which shows their latency, at every fifth look. */
const measureEvery = 5;
/** Their load changes slowly, and reporting it costs them a tenth of a millisecond. */
const sampleEvery = 15;

/** Opens counters on servers. Unreachable ones are connected to in the background. */
export async function openRedisCounters(
  plan: RedisPlan,
  settings: Settings,
  log: Logger,
  hotKeys: HotKeys,
): Promise<RunningCounters> {
  const placed = await placeServers(plan, settings);
  const cells = await readCells(settings);
  return new LookedAfterCounters({ plan, placed, cells, settings, log, hotKeys });
}

interface LookedAfterOptions {
  readonly plan: RedisPlan;
  readonly placed: PlacedServers;
  readonly cells: readonly ServedCell[];
  readonly settings: Settings;
  readonly log: Logger;
  readonly hotKeys: HotKeys;
}

/**
 * Counters on servers, which are maintained every second: inspected, probed, and exchanged for others. Busy ones are
 * decided from leases. One change of servers waits for the one before:
 *
 *     kind assumed ──a server answers──► kind known ──refresh──► other servers, deadline or breaker
 *     (as a cluster)                         ▲                        │ connected; else the old ones stay
 *                                            └────────────────────────┘
 */
class LookedAfterCounters implements RunningCounters {
  readonly hotKeys: HotKeys;
  readonly stats: RunningCounters["stats"];
  readonly #options: LookedAfterOptions;
  /** The servers themselves, below the leases. */
  readonly #central: RedisCounters;
  readonly #leases: RunningLeases;
  readonly #reports: RedisReports;
  readonly #loadReports: LoadReports;
  readonly #strained = new StrainedServers();
  readonly #inspector: ShardInspector;
  readonly #timer: NodeJS.Timeout;
  #servers: RedisServers;
  #kindKnown: boolean;
  #times: Pick<RedisPlan, "deadlineMs" | "breaker">;
  #looks = 0;
  #looking = false;
  #stopped = false;
  /** The last change of servers, begun or waiting. */
  #changing: Promise<unknown> = Promise.resolve();

  constructor(options: LookedAfterOptions) {
    const { plan, placed, cells, settings, log, hotKeys } = options;
    this.#options = options;
    this.hotKeys = hotKeys;
    this.#servers = placed.servers;
    this.#kindKnown = placed.kindKnown;
    this.#times = { deadlineMs: plan.deadlineMs, breaker: plan.breaker };
    const central = createCounters(plan, placed.servers, cells, settings, log);
    central.open();
    this.#central = central;
    const strainedDecisions: LeasedCountersOptions["strainedDecisions"] = (asked) =>
      this.#strained.findDecisions(asked, central);
    this.#leases = openLeases({ centre: central, settings, log, hotKeys, strainedDecisions });
    this.#reports = new RedisReports(central, log);
    this.#loadReports = new LoadReports(log, hotKeys);
    this.#inspector = new ShardInspector({ cells, log, maxConnections: settings.redisMaxConnections });
    this.stats = {
      redis: () => ({ ...central.stats, ready: central.ready }),
      leases: this.#leases.stats,
    };
    log.info("counters.opened", { servers: this.where, cells: cells.length, deadlineMs: plan.deadlineMs });
    this.#timer = setInterval(() => void this.#look(), lookEveryMs);
    this.#timer.unref();
  }

  get store(): CounterStore {
    return this.#leases.store;
  }

  get where(): string {
    return renderServers(this.#servers);
  }

  status(): CountersStatus {
    return redisStatus(this.#central, this.#leases.status());
  }

  async refresh(runtime: RateLimitsRuntime | undefined): Promise<void> {
    try {
      await this.#change(async () => {
        if (!this.#stopped) await this.#follow(runtime);
      });
    } catch (error) {
      this.#options.log.error("counters.refresh_failed", { reason: this.#renderReason(error) });
    }
  }

  drain(): Promise<void> {
    return this.#leases.drain();
  }

  stop(): void {
    this.#stopped = true;
    clearInterval(this.#timer);
  }

  /** Runs changes of servers one after the other. */
  #change<T>(work: () => Promise<T>): Promise<T> {
    const done = this.#changing.then(work);
    this.#changing = done.catch(() => undefined);
    return done;
  }

  /** Periodic work, apart from requests. */
  async #look(): Promise<void> {
    if (this.#looking || this.#stopped) return;
    this.#looking = true;
    try {
      if (!this.#kindKnown) await this.#change(() => this.#learnKind());
      this.#leases.look();
      this.#looks += 1;
      if (this.#looks % measureEvery === 0) this.#central.measure();
      const sinceSample = (this.#looks - 1) % sampleEvery;
      if (sinceSample === 0) this.#central.sampleLoad();
      // Servers have answered by then.
      if (sinceSample === 1) this.#strained.look(this.#central.stats);
      this.#loadReports.look(this.#central.stats.shards);
      this.#reports.look(this.#times.deadlineMs, this.where);
      await this.#inspector.inspectNew(this.#central.stats, this.#servers, () => this.#stopped);
    } catch (error) {
      this.#options.log.debug("counters.inspect_failed", { reason: this.#renderReason(error) });
    } finally {
      this.#looking = false;
    }
  }

  async #learnKind(): Promise<void> {
    const kind = await askKind(this.#servers);
    if (kind === undefined || this.#stopped) return;
    if (kind !== this.#servers.kind) await this.#goOver(asKind(this.#servers, kind, this.#options.plan.servers));
    this.#kindKnown = true;
  }

  /** Rejects if the next servers cannot be reached. If everything was closed meanwhile, the new ones are closed too. */
  async #goOver(next: RedisServers): Promise<void> {
    await this.#central.useServers(next);
    if (this.#stopped) await this.#central.close();
    this.#servers = next;
  }

  async #follow(runtime: RateLimitsRuntime | undefined): Promise<void> {
    const { settings, log } = this.#options;
    const plan = planCounters(settings, runtime);
    if (plan.kind === "memory") {
      log.warn("counters.servers_removed");
      return;
    }
    this.#useTimes(plan);
    const { servers, ofUnknownKind } = plan;
    const ofKind = ofUnknownKind ? asKind(servers, this.#servers.kind, servers) : servers;
    const wanted = await withTlsFiles(ofKind, settings);
    if (isDeepStrictEqual(wanted, this.#servers)) return;
    const [from, to] = [this.where, renderServers(wanted)];
    try {
      await this.#goOver(wanted);
    } catch {
      log.error("counters.move_failed", { from, to });
      return;
    }
    if (from === to) log.info("counters.reconnected", { servers: to });
    else log.info("counters.moved", { from, to });
  }

  #useTimes({ deadlineMs, breaker }: RedisPlan): void {
    if (isDeepStrictEqual({ deadlineMs, breaker }, this.#times)) return;
    this.#times = { deadlineMs, breaker };
    this.#central.useTimes({ deadlineMs, breaker });
    this.#options.log.info("counters.health_check_changed", { deadlineMs, ...breaker });
  }

  #renderReason(error: unknown): string {
    const { cells, settings } = this.#options;
    return withoutSecrets(String(error), listSecrets(this.#servers, cells, settings));
  }
}

/** Counters on servers for a command that asks a few times and needs no maintenance. */
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
  const redisLog = createRedisLog(log, () => listSecrets(servers, cells, settings));
  return new RedisCounters({ servers, prefix, lanes, deadlineMs, breaker, cells, onEvent: redisLog.onEvent });
}

function listSecrets(servers: RedisServers, cells: readonly ServedCell[], settings: Settings): readonly string[] {
  const all = [servers, ...cells.map((cell) => cell.servers)];
  const read = (["redisPasswordFile", "redisSentinelPasswordFile"] as const).flatMap((name) => [
    ...(findPasswordFile(name, settings)?.secrets ?? []),
  ]);
  const given = [settings.redisPassword, settings.redisSentinelPassword, ...all.map(({ password }) => password)];
  return [...read, ...given.filter((secret) => secret !== undefined)];
}
