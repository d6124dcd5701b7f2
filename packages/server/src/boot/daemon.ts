import { hostname } from "node:os";
import { setTimeout as sleep } from "node:timers/promises";
import { createLimiter, type HotKeys, type Limiter, maxPreviewCacheMs, type PolicySet, parsePolicies } from "sluice";
import type { ParsedPolicyFiles } from "sluice/policy-text";
import { type FirstToken, joinStore } from "../control-plane/node/join-store.ts";
import { openStore } from "../control-plane/node/open-store.ts";
import { createPoliciesInForce } from "../control-plane/node/policies-in-force.ts";
import { createPolicyKeeper, type StartingPolicies } from "../control-plane/node/policy-keeper.ts";
import type { RolloutTime } from "../control-plane/rollouts/rollout-time.ts";
import { createAccess } from "../data-plane/access/create-access.ts";
import { openCounters } from "../data-plane/counters/open-counters.ts";
import type { LoadedPolicies, PolicyFiles } from "../data-plane/policy-files/policy-files.ts";
import {
  createPolicyReloader,
  logWarnings,
  type PolicyReloader,
  type PolicyStatus,
} from "../data-plane/policy-files/policy-reloader.ts";
import type { WatchOptions } from "../data-plane/policy-files/watch-policy-files.ts";
import { createService } from "../data-plane/service/create-service.ts";
import { createDecide } from "../data-plane/service/decide.ts";
import { type PolicyOrigin, readServerStatus } from "../data-plane/status/server-status.ts";
import { reportHotKeys } from "../observe/hot-keys/hot-key-report.ts";
import { createOwnHotKeys } from "../observe/hot-keys/own-hot-keys.ts";
import { createCapacityLog } from "../observe/telemetry/capacity-log.ts";
import { createDecisionLog } from "../observe/telemetry/decision-log.ts";
import { createHideSubject } from "../observe/telemetry/hide-subjects.ts";
import type { HotKeyFigures } from "../observe/telemetry/hot-key-families.ts";
import type { Logger } from "../observe/telemetry/logger.ts";
import { createMetrics } from "../observe/telemetry/metrics.ts";
import type { Tracing } from "../observe/telemetry/tracing.ts";
import type { WorkerLink } from "../observe/worker-link.ts";
import type { Settings } from "../settings/settings.ts";
import { version } from "../version.ts";
import { type Addresses, createTransports } from "./create-transports.ts";
import { refuseLocalCounters } from "./workers/check-workers.ts";
import { metricsOfAll } from "./workers/metrics-of-all.ts";

/** A running server. */
export interface Daemon {
  /** Where HTTP is spoken first: `http://127.0.0.1:8080`. Empty where it is not. */
  readonly url: string;
  /** Everywhere it listens, by protocol. */
  readonly addresses: Addresses;
  readonly limiter: Limiter;
  /** Where counters are: `memory`, or the servers' address without user and password. */
  readonly countersAt: string;
  /** Where the policy store is, without user and password; undefined where there is none. */
  readonly storeAt: string | undefined;
  /** The first admin token of the policy store, where this start made it. */
  readonly firstToken: FirstToken | undefined;
  /** Reads policies, tokens and certificates again, as after SIGHUP. */
  reload(): Promise<void>;
  /**
   * Is not ready any more, after `drainMs` stops accepting, finishes what is in flight, and closes everything. Asked
   * again, it is the same closing.
   */
  close(): Promise<void>;
}

export interface DaemonOptions {
  readonly settings: Settings;
  readonly log: Logger;
  readonly watch?: WatchOptions;
  /** Whether metrics tell of the process as well. */
  readonly processMetrics?: boolean;
  /** How long requests in flight may take to finish. */
  readonly closeWithinMs?: number;
  /** Waits for so many milliseconds. Absent: by the machine's clock. */
  readonly pause?: (ms: number) => Promise<unknown>;
  /** Of one of several processes behind the same ports. */
  readonly worker?: WorkerLink | undefined;
  /** Time by which people and jobs steer rollouts. Absent: the machine's clock. */
  readonly rolloutTime?: RolloutTime | undefined;
}

/**
 * Loads policies, opens counters, builds the limiter and listens. Throws `invalid_policies` with every problem, a
 * `SettingError`, or why it cannot listen. Counter servers that cannot be reached do not keep it from starting.
 */
export async function startDaemon(options: DaemonOptions): Promise<Daemon> {
  const opened: LetGo[] = [];
  try {
    return await open(options, opened);
  } catch (error) {
    for (const letGo of opened.reverse()) await letGo();
    throw error;
  }
}

/** How to let go of something that was opened, should a later step fail. */
type LetGo = () => unknown;

async function open(options: DaemonOptions, opened: LetGo[]): Promise<Daemon> {
  const { settings, log, closeWithinMs = 10_000, pause = sleep, worker, rolloutTime } = options;
  const startedAtMs = Date.now();
  const keeper = createPolicyKeeper({ file: settings.policySnapshot, log });
  const { loaded, refused, files } =
    settings.config === undefined ? withoutFiles() : await keeper.load(settings.config);
  let { runtime } = loaded;
  let origin: PolicyOrigin = {
    source: settings.config === undefined ? "none" : refused === undefined ? "files" : "snapshot",
    digest: loaded.digest,
    takenUpMs: startedAtMs,
  };
  const { store: url } = settings;
  const openedStore = url === undefined ? undefined : await openStore({ url, settings, keeper, log, rolloutTime });
  opened.push(() => openedStore?.tallies.close().then(() => openedStore.store.close()));
  const counters = await openCounters({ settings, runtime, log });
  opened.push(
    () => counters.store.close(),
    () => counters.stop(),
  );
  if (worker !== undefined && counters.store.local) throw refuseLocalCounters();
  const { hotKeys } = counters;
  const ownHotKeys = createOwnHotKeys({
    ...{ hotKeys, worker },
    node: openedStore?.node ?? { id: `${hostname()}-${process.pid}`, name: settings.nodeName ?? hostname() },
  });
  const limiter = createLimiter({
    policies: loaded.policySet,
    counters: counters.store,
    ipv6PrefixBits: settings.ipv6PrefixBits,
    onPreviewHit: () => ownMetrics.countPreviewHit(),
    onMissing: ({ id }, dimension) => ownMetrics.countMissing(id, dimension),
    onTrial: openedStore?.tallies.onTrial,
    ...previewCacheOf(loaded, counters.store.local),
  });
  const policies = createPoliciesInForce({
    limiter,
    files: loaded.policySet,
    precedence: settings.precedence,
    log,
    onUsed: (policySet) => metrics.usePolicies(policySet),
  });
  const node =
    openedStore &&
    (await joinStore({
      ...{ opened: openedStore, settings, runtime, limiter, policies, keeper, log, hotKeys, ownHotKeys },
      startedMs: startedAtMs,
      worker: worker?.number,
      rolloutTime,
    }));
  opened.push(() => node?.close());
  const tracing = await openTracing(settings, log, counters.store.local, worker?.number);
  opened.push(() => tracing?.close(0));
  const ownMetrics = createMetrics({
    version,
    process: options.processMetrics ?? false,
    worker: worker?.number,
    sources: {
      ...counters.figures,
      generation: () => limiter.snapshot.generation,
      store: node?.figures,
      hotKeys: hotKeyFigures(settings, hotKeys),
      pending: () => service.decide.pending,
      connections: () => transports.connections,
      spans: tracing && (() => tracing.spans),
      snapshot:
        settings.policySnapshot === undefined
          ? undefined
          : () => ({ inUse: origin.source === "snapshot", writtenMs: keeper.writtenMs }),
    },
  });
  const metrics = worker === undefined ? ownMetrics : metricsOfAll(ownMetrics, worker);
  metrics.usePolicies(loaded.policySet);
  if (refused !== undefined) metrics.startStale();
  const known = await createAccess(settings, log, { onRefused: () => metrics.countError("unauthenticated") });
  opened.push(() => known.close());
  await node?.start(known);
  const access = node === undefined ? known : node.watch(known);
  let accepting = true;
  let reloader: PolicyReloader | undefined;
  /** How often counter servers were compared with the policy files, and the comparison under way, if any. */
  let refreshes = 0;
  let refreshing: Promise<void> | undefined;
  const service = createService({
    limiter,
    decide: createDecide({
      limiter,
      metrics,
      observe: createDecisionLog({ log, level: settings.logLevel, sample: settings.logSample }),
      maxPending: settings.maxPending,
      maxChecksPerSecond: settings.maxChecksPerSecond,
    }),
    access,
    metrics,
    log,
    accepting: () => accepting,
    policyStatus,
    countersStatus: () => counters.status(),
    storeStatus: () => node?.report(),
    hotKeys: ownHotKeys,
    audit: node?.control?.audit,
    leaseTimes: settings.leases === "off" ? "off" : { leaseMs: settings.leaseMs, staleMs: settings.leaseStaleMs },
    status: () =>
      readServerStatus({
        version,
        worker: worker?.number,
        startedAtMs,
        accepting: () => accepting,
        snapshot: () => limiter.snapshot,
        policyPath: settings.config,
        policyStatus,
        policyOrigin: () => origin,
        store: () => node?.report(),
        counters,
        pending: () => service.decide.pending,
        maxPending: settings.maxPending,
        refused: metrics.refused,
        addresses: () => addresses,
        connections: () => transports.connections,
      }),
    tracing,
    version,
  });
  const transports = await createTransports(service, settings, {
    sharesPaths: worker !== undefined,
    control: node?.control,
  });

  function policyStatus(): PolicyStatus {
    if (reloader !== undefined) return reloader.status;
    return refused === undefined ? { state: "current", problems: [] } : { state: "stale", problems: refused.problems };
  }

  function refreshCounters(): void {
    refreshes += 1;
    const refresh = counters.refresh(runtime).finally(() => {
      if (refreshing === refresh) refreshing = undefined;
    });
    refreshing = refresh;
  }

  async function close(): Promise<void> {
    accepting = false;
    // Load balancers see /readyz fail and send their requests elsewhere before connections do fail.
    if (settings.drainMs > 0) await pause(settings.drainMs);
    reloader?.close();
    const cut = await transports.close(closeWithinMs);
    if (cut > 0) log.warn({ connections: cut }, "some requests did not finish in time and were cut off");
    access.close();
    capacityLog.close();
    // Nobody spends any more, and the counters still listen.
    await counters.drain();
    counters.stop();
    await node?.close();
    await limiter.close();
    await Promise.all([keeper.close(), tracing?.close()]);
  }

  const addresses = await transports.listen();
  opened.push(() => transports.close(0));
  if (settings.config !== undefined) {
    const { config: path } = settings;
    logWarnings(log, path, loaded.warnings);
    const watch = options.watch === undefined ? {} : { watch: options.watch };
    // Of several processes one is enough to keep what all of them use.
    const keep = (taken: PolicyFiles): void => {
      if ((worker?.number ?? 1) === 1) void keeper.keep(path, taken, limiter.snapshot.generation);
    };
    const onTakenUp = (parsed: ParsedPolicyFiles, taken: PolicyFiles): void => {
      const { digest } = taken;
      origin = { source: "files", digest, takenUpMs: digest === origin.digest ? origin.takenUpMs : Date.now() };
      runtime = parsed.runtime;
      refreshCounters();
      keep(taken);
    };
    if (files !== undefined) keep(files);
    const limiterOfFiles = { usePolicies: (policySet: PolicySet) => policies.useFiles(policySet) };
    reloader = await createPolicyReloader({
      ...{ path, loaded, refused, limiter: limiterOfFiles, log, metrics, onTakenUp },
      ...watch,
    });
  }
  const capacityLog = createCapacityLog({ nearLimits: metrics.nearLimits, shed: () => metrics.refused.shed }, log);
  let closing: Promise<void> | undefined;
  return {
    url: addresses.http[0] ?? "",
    addresses,
    limiter,
    get countersAt(): string {
      return counters.where;
    },
    storeAt: openedStore?.store.where,
    firstToken: node?.firstToken,
    async reload(): Promise<void> {
      // A change that the file watcher found first is applied once: a refresh under way is joined, not repeated.
      const [before, underWay] = [refreshes, refreshing];
      await reloader?.reload();
      if (refreshes === before && underWay === undefined) refreshCounters();
      await refreshing;
      await Promise.all([access.reload(), transports.reload(), node?.look()]);
    },
    close: () => (closing ??= close()),
  };
}

/** Nothing but the default policy. */
function withoutFiles(): StartingPolicies {
  const loaded = { policySet: parsePolicies({ policies: [] }), warnings: [], dialects: [], digest: "" };
  return { loaded, files: undefined, refused: undefined };
}

/** The hottest counters as metrics, where settings want that. What is not to be logged is not shown there either. */
function hotKeyFigures(
  { hotKeyMetrics: count, logHashSubjects }: Settings,
  hotKeys: HotKeys,
): HotKeyFigures | undefined {
  if (count === 0) return undefined;
  const show = logHashSubjects ? createHideSubject() : (subject: string) => subject;
  return { count, show, read: () => reportHotKeys(hotKeys, count) };
}

/** Code for traces is loaded only where they go somewhere. */
async function openTracing(
  { otlpEndpoint: endpoint, otlpHeaders: headers, otlpServiceName: serviceName }: Settings,
  log: Logger,
  local: boolean,
  worker: number | undefined,
): Promise<Tracing | undefined> {
  if (endpoint === undefined) return undefined;
  const { createOtlpTracing } = await import("../observe/telemetry/otlp-tracing.ts");
  return createOtlpTracing({ endpoint, headers, serviceName, version, worker, local, log });
}

/** A file in the rate_limits format may turn the read cache off or shorten it. Longer times, usual in that format, are cut to ours. */
function previewCacheOf({ runtime = {} }: LoadedPolicies, local: boolean): { readonly previewCacheMs?: number } {
  if (runtime.enableReadCache === false) return { previewCacheMs: 0 };
  if (local || runtime.readCacheTtlMs === undefined) return {};
  return { previewCacheMs: Math.min(runtime.readCacheTtlMs, maxPreviewCacheMs) };
}
