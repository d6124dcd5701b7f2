import { hostname } from "node:os";
import { setTimeout as sleep } from "node:timers/promises";
import type { CounterStore, Limiter } from "sluice";
import { type FirstToken, joinStore, type StoreNode } from "../control-plane/node/join-store.ts";
import { type OpenedStore, openStore } from "../control-plane/node/open-store.ts";
import type { PoliciesInForce } from "../control-plane/node/policies-in-force.ts";
import { renderStoreUrl } from "../control-plane/node/render-store-url.ts";
import { openPolicyTopic } from "../control-plane/policy-topic/policy-topic.ts";
import type { RolloutTime } from "../control-plane/rollouts/rollout-time.ts";
import { createAccess } from "../data-plane/access/create-access.ts";
import { openCounters } from "../data-plane/counters/open-counters.ts";
import type { RunningCounters } from "../data-plane/counters/running-counters.ts";
import type { WatchOptions } from "../data-plane/policy-files/watch-policy-files.ts";
import { DenialSamples } from "../observe/denials/denial-samples.ts";
import { findLimitDimensions } from "../observe/denials/find-limit-dimensions.ts";
import { createOwnHotKeys, type OwnHotKeys } from "../observe/hot-keys/own-hot-keys.ts";
import { DecisionTail } from "../observe/live/decision-tail.ts";
import type { Recorder } from "../observe/recording/recorder.ts";
import { createCapacityLog } from "../observe/telemetry/capacity-log.ts";
import type { Logger } from "../observe/telemetry/logger.ts";
import type { Tracing } from "../observe/telemetry/tracing.ts";
import { UsageSums } from "../observe/usage/usage-sums.ts";
import type { WorkerLink } from "../observe/worker-link.ts";
import type { Settings } from "../settings/settings.ts";
import { CounterRefreshes } from "./counter-refreshes.ts";
import { type Addresses, createTransports } from "./create-transports.ts";
import { FilePolicies } from "./file-policies.ts";
import { hasConsole, makeStartLink, openConsole } from "./open-console.ts";
import { openLimiter } from "./open-limiter.ts";
import { openLive } from "./open-live.ts";
import { openMetrics } from "./open-metrics.ts";
import { OpenParts } from "./open-parts.ts";
import { openRecorder, startRecording } from "./open-recorder.ts";
import { openService } from "./open-service.ts";
import { openTracing } from "./open-tracing.ts";
import { openUsageEvents, type RunningUsageEvents } from "./open-usage-events.ts";
import type { RunningParts } from "./running-parts.ts";
import { refuseLocalCounters } from "./workers/check-workers.ts";

/** A running server. */
export interface Daemon {
  /** The first HTTP address: `http://127.0.0.1:8080`. Empty if there is none. */
  readonly url: string;
  /** Every address that it listens on, by protocol. */
  readonly addresses: Addresses;
  readonly limiter: Limiter;
  /** Where counters are: `memory`, or the servers' address without user and password. */
  readonly countersAt: string;
  /** Where the policy store is, without user and password; undefined if there is none. */
  readonly storeAt: string | undefined;
  /** The first admin token of the policy store, if this start created it. */
  readonly firstToken: FirstToken | undefined;
  /** The address of the console in a browser; undefined if there is none. */
  readonly consoleAt: string | undefined;
  /**
   * A link that signs in to the console once, as admin. For a person at the terminal alone: never log it. Undefined if there is no
   * console.
   */
  makeConsoleLink(): string | undefined;
  /** Reads policies, tokens and certificates again, as after SIGHUP. */
  reload(): Promise<void>;
  /**
   * Stops being ready, stops accepting after `drainMs`, finishes what is in flight, and closes everything. A second
   * call joins the first.
   */
  close(): Promise<void>;
}

export interface DaemonOptions {
  readonly settings: Settings;
  readonly log: Logger;
  readonly watch?: WatchOptions;
  /** Whether metrics include those of the process. */
  readonly processMetrics?: boolean;
  /** How long requests in flight may take to finish. */
  readonly closeWithinMs?: number;
  /** Waits this many milliseconds. Absent: by the machine's clock. */
  readonly pause?: (ms: number) => Promise<unknown>;
  /** Set if it is one of several processes behind the same ports. */
  readonly worker?: WorkerLink | undefined;
  /** The clock that people and jobs run rollouts by. Absent: the machine's clock. */
  readonly rolloutTime?: RolloutTime | undefined;
}

/**
 * Loads policies, opens counters, builds the limiter and listens. Throws `invalid_policies` with every problem, a
 * `SettingError`, or the reason it cannot listen. Unreachable counter servers do not keep it from starting.
 */
export async function startDaemon(options: DaemonOptions): Promise<Daemon> {
  const parts = new OpenParts();
  try {
    const core = await openCore(options, parts);
    return await openToCallers(options, parts, core);
  } catch (error) {
    // Why the start failed matters more than what went wrong while cleaning up.
    await parts.close("at once").catch(() => undefined);
    throw error;
  }
}

/*
 * Parts are opened in the order of this file and closed in reverse, so a server that stops
 *
 *     is not ready ──► pauses (--drain) ──► closes its doors ──► gives leases back ──► leaves the store's nodes
 *       ──► sends its last usage events and spans ──► closes counters ──► closes the store ──► finishes the snapshot
 *
 * Not ready comes first, so that load balancers see /readyz fail before connections do. Doors close before leases are
 * given back, because every decision in flight may spend from one. Leases go back before the node leaves: other servers
 * want the quota, and a store that does not answer may hold us up for seconds. The node leaves before counters close,
 * because it resets counters and forces the limiter; and the store closes after them, because it tallies the last
 * decisions.
 */

/** How long a server that stops sends usage events. */
const flushEventsWithinMs = 5_000;

/** Everything that decides, and what it decides by. */
interface Core {
  readonly startedAtMs: number;
  readonly running: RunningParts;
  readonly files: FilePolicies;
  readonly store: OpenedStore | undefined;
  readonly counters: RunningCounters;
  readonly tracing: Tracing | undefined;
  readonly limiter: Limiter;
  readonly policies: PoliciesInForce;
  readonly hotKeys: OwnHotKeys;
  /** Undefined without a policy store, or if no history is kept. */
  readonly usage: UsageSums | undefined;
  readonly usageEvents: RunningUsageEvents;
  /** Undefined without a policy store, or if none are recorded. */
  readonly denials: DenialSamples | undefined;
  readonly recorder: Recorder;
  readonly node: StoreNode | undefined;
}

/** Nothing listens yet, and the policy store is not followed yet. */
async function openCore({ settings, log, worker, rolloutTime }: DaemonOptions, parts: OpenParts): Promise<Core> {
  const startedAtMs = Date.now();
  const running: RunningParts = {
    accepting: true,
    ...{ metrics: undefined, service: undefined, transports: undefined, addresses: undefined },
  };

  const files = await FilePolicies.load({ settings, log, startedAtMs, worker: worker?.number });
  const { loaded, keeper, runtime } = files;
  parts.add(() => keeper.close());

  const { store: url } = settings;
  const topic =
    url === undefined || settings.push !== "kafka"
      ? undefined
      : await openPolicyTopic(settings, renderStoreUrl(url), log);
  parts.add(() => topic?.close());
  const store = url === undefined ? undefined : await openStore({ url, settings, keeper, topic, log, rolloutTime });
  parts.add(() => store?.close());

  const counters = await openCounters({ settings, runtime, log });
  parts.add(() => {
    counters.stop();
    return counters.store.close();
  });
  if (worker !== undefined && counters.store.local) throw refuseLocalCounters();

  const tracing = await openTracing({ settings, log, local: counters.store.local, worker: worker?.number });
  parts.add((closing) => (closing === "gently" ? tracing?.close() : tracing?.close(0)));

  const { limiter, policies, watch } = openLimiter({ settings, log, loaded, counters, store, running });
  const hotKeys = createOwnHotKeys({
    ...{ hotKeys: counters.hotKeys, worker },
    node: store?.node ?? { id: `${hostname()}-${process.pid}`, name: settings.nodeName ?? hostname() },
  });
  const { usageBy: dimensions, ipv6PrefixBits } = settings;
  const isUsageKept = store !== undefined && dimensions.length > 0;
  const usage = isUsageKept ? new UsageSums({ dimensions, ipv6PrefixBits }) : undefined;
  const usageEvents = await openUsageEvents({ settings, runtime, limiter, log, worker: worker?.number });
  parts.add((closing) => usageEvents.close(closing === "gently" ? flushEventsWithinMs : 0));
  const denials = store === undefined ? undefined : openDenialSamples(settings, limiter);
  const findStore = (): CounterStore => counters.deciding ?? counters.store;
  const recorder = openRecorder({ settings, log, limiter, watch, findStore, worker: worker?.number });
  parts.add(() => recorder.close());
  const node =
    store &&
    (await joinStore({
      ...{
        opened: store,
        settings,
        runtime,
        limiter,
        policies,
        keeper,
        topic,
        log,
        rolloutTime,
        usage,
        denials,
        recorder,
      },
      usageTail: usageEvents.tail,
      ...{ hotKeys: counters.hotKeys, ownHotKeys: hotKeys, startedMs: startedAtMs, worker: worker?.number },
    }));
  parts.add(() => node?.close());
  parts.add(async (closing) => {
    if (closing === "gently") await counters.drain();
    counters.stop();
  });
  return {
    startedAtMs,
    running,
    files,
    store,
    counters,
    tracing,
    limiter,
    policies,
    hotKeys,
    usage,
    usageEvents,
    denials,
    recorder,
    node,
  };
}

function openDenialSamples(
  { denialRetentionMs, usageBy }: Settings,
  limiter: Pick<Limiter, "snapshot">,
): DenialSamples | undefined {
  if (denialRetentionMs === 0) return undefined;
  return new DenialSamples({
    findBy: (policy, limit) => findLimitDimensions(limiter.snapshot, policy, limit),
    shareBy: usageBy[0],
    nowMs: Date.now,
  });
}

/** Lets callers in, and follows policies wherever they are. */
async function openToCallers(options: DaemonOptions, parts: OpenParts, core: Core): Promise<Daemon> {
  const { settings, log, closeWithinMs = 10_000, pause = sleep, worker } = options;
  const { running, files, counters, limiter, policies, node } = core;

  const metrics = openMetrics({ ...core, settings, worker, ofProcess: options.processMetrics ?? false });
  running.metrics = metrics;

  const known = await createAccess(settings, log, { onRefused: () => metrics.countError("unauthenticated") });
  parts.add(() => known.close());
  await node?.start(known);
  const access = node === undefined ? known : node.watch(known);

  const tail = node?.control && new DecisionTail();
  const service = openService({ ...core, settings, log, worker: worker?.number, access, metrics, tail });
  running.service = service;
  const live =
    node?.control && tail && core.store
      ? openLive({ settings, service, control: node.control, limiter, tail, node: core.store.node, worker })
      : undefined;
  const console = node?.control && (await openConsole({ settings, log, worker }));
  const transports = await createTransports(service, settings, {
    sharesPaths: worker !== undefined,
    control: node?.control,
    console,
    live,
  });
  running.transports = transports;
  await startRecording(core.recorder, settings, worker?.number);
  const addresses = await transports.listen();
  running.addresses = addresses;
  parts.add(async (closing) => {
    const cut = await transports.close(closing === "gently" ? closeWithinMs : 0);
    if (cut > 0) log.warn("server.requests_cut_off", { connections: cut });
  });

  const refreshes = new CounterRefreshes(counters, () => files.runtime);
  const generation = (): number => limiter.snapshot.generation;
  await files.watch({ policies, metrics, generation, onApplied: () => refreshes.begin(), watch: options.watch });
  parts.add(() => files.stopWatching());

  const capacityLog = createCapacityLog({ nearLimits: metrics.nearLimits, shed: () => metrics.refused.shed }, log);
  parts.add(() => capacityLog.close());

  parts.add(async () => {
    running.accepting = false;
    core.usageEvents.tail.close();
    live?.close();
    if (settings.drainMs > 0) await pause(settings.drainMs);
  });
  return {
    url: addresses.http[0] ?? "",
    addresses,
    limiter,
    get countersAt(): string {
      return counters.where;
    },
    storeAt: core.store?.store.where,
    firstToken: node?.firstToken,
    consoleAt: hasConsole(console) && addresses.admin[0] !== undefined ? `${addresses.admin[0]}/` : undefined,
    makeConsoleLink(): string | undefined {
      const [address] = addresses.admin;
      const link = console && address && makeStartLink(console);
      return link && address + link;
    },
    async reload(): Promise<void> {
      await refreshes.follow(() => files.reload());
      await Promise.all([access.reload(), transports.reload(), node?.look()]);
    },
    close: () => parts.close("gently"),
  };
}
