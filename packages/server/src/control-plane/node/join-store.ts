import type { AuditRecord, NodeRecord, TokenRecord } from "@sluice/sql";
import type { HotKeys, Limiter } from "sluice";
import type { DisabledPolicy } from "sluice/internal";
import type { RateLimitsRuntime } from "sluice/policy-text";
import type { RunningAccess } from "../../data-plane/access/create-access.ts";
import { type Role, roles } from "../../data-plane/access/roles.ts";
import { countPolicies } from "../../data-plane/policy-files/count-policies.ts";
import type { StoreReport } from "../../data-plane/status/store-report.ts";
import type { DenialSamples } from "../../observe/denials/denial-samples.ts";
import { encodeReport, reportHotKeys } from "../../observe/hot-keys/hot-key-report.ts";
import type { OwnHotKeys } from "../../observe/hot-keys/own-hot-keys.ts";
import type { Recorder } from "../../observe/recording/recorder.ts";
import type { Logger } from "../../observe/telemetry/logger.ts";
import { noDenials, noUsage, StoreMetrics, type StoreReading } from "../../observe/telemetry/store-metrics.ts";
import type { UsageSums } from "../../observe/usage/usage-sums.ts";
import type { UsageTail } from "../../observe/usage-events/usage-tail.ts";
import { SettingError } from "../../settings/parse-settings.ts";
import type { Settings } from "../../settings/settings.ts";
import { version } from "../../version.ts";
import type { ControlPlane } from "../control-plane.ts";
import { DenialFlusher } from "../denials/denial-flusher.ts";
import { renderOverridden } from "../documents/merge-policies.ts";
import type { StoredGeneration } from "../documents/stored-generation.ts";
import { createJobs, type Jobs } from "../jobs/run-jobs.ts";
import type { PolicyTopic } from "../policy-topic/policy-topic.ts";
import { TopicPublisher } from "../policy-topic/topic-publisher.ts";
import type { RolloutTime } from "../rollouts/rollout-time.ts";
import { UsageFlusher } from "../usage/usage-flusher.ts";
import { hotKeysDetail } from "../use-cases/control-nodes.ts";
import { createControlPlane, type RunningControlPlane } from "../use-cases/create-control-plane.ts";
import { readAuditedReset, resetCounters } from "../use-cases/reset-counters.ts";
import { KeptRecordings } from "../what-if/kept-recordings.ts";
import type { GenerationSource } from "./applied-generation.ts";
import { finishWithin } from "./finish-within.ts";
import { Follower } from "./follower.ts";
import { isStoreUnavailable } from "./is-store-unavailable.ts";
import { type FirstToken, makeFirstToken } from "./make-first-token.ts";
import { createNodeReports, type NodeReports } from "./node-reports.ts";
import { openPush } from "./open-push.ts";
import type { OpenedStore } from "./open-store.ts";
import type { PoliciesInForce } from "./policies-in-force.ts";
import type { PolicyKeeper } from "./policy-keeper.ts";
import type { Push } from "./push.ts";
import { seedStore } from "./seed-store.ts";
import { createTokenUses, type TokenUses } from "./token-uses.ts";

export type { FirstToken } from "./make-first-token.ts";

export interface JoinStoreOptions {
  readonly opened: OpenedStore;
  readonly settings: Settings;
  readonly runtime: RateLimitsRuntime | undefined;
  readonly limiter: Limiter;
  readonly policies: PoliciesInForce;
  readonly keeper: Pick<PolicyKeeper, "keepStored">;
  /** Open if policies are pushed by Kafka. */
  readonly topic: PolicyTopic | undefined;
  /**
   * The hot keys that this process reports every few seconds, and those that it and its sibling workers return on
   * request.
   */
  readonly hotKeys: Pick<HotKeys, "top" | "totals">;
  readonly ownHotKeys: OwnHotKeys;
  /** What this process counts, to be stored. Undefined: no history is kept. */
  readonly usage: UsageSums | undefined;
  /** A sample of what this process denies, to be stored. Undefined: none are recorded. */
  readonly denials: DenialSamples | undefined;
  /** Records what this process decides. */
  readonly recorder: Recorder;
  /** The latest usage events of this process. */
  readonly usageTail?: UsageTail | undefined;
  readonly log: Logger;
  readonly startedMs: number;
  /** The number of this process among several behind the same ports. */
  readonly worker: number | undefined;
  readonly lookEveryMs?: number | undefined;
  readonly rolloutTime?: RolloutTime | undefined;
}

/** Makes a server a node of its policy store. Starts nothing yet. */
export async function joinStore(options: JoinStoreOptions): Promise<StoreNode> {
  const { opened, settings, runtime, topic, log } = options;
  return new StoreNode(options, await openPush({ settings, runtime, store: opened.store, topic, log }));
}

/** How many hot keys a node stores, by rate and by denials each: a few kilobytes every few seconds. */
const reportedHotKeys = 20;

/**
 * A server as a node of its policy store: it follows the store, reports its state, and changes policies for all nodes.
 *
 *     joined ──start──► prepared ──────────────► following, reporting, doing its share of jobs ──close──► left
 *                       (seeded, first token)    (the store itself stays open)
 */
export class StoreNode {
  readonly figures: StoreMetrics;
  readonly #options: JoinStoreOptions;
  readonly #push: Push;
  readonly #uses: TokenUses = createTokenUses();
  readonly #follower: Follower;
  readonly #control: RunningControlPlane;
  readonly #publisher: TopicPublisher | undefined;
  #access: RunningAccess | undefined;
  #reports: NodeReports | undefined;
  #usage: UsageFlusher | undefined;
  #denials: DenialFlusher | undefined;
  #jobs: Jobs | undefined;
  #firstToken: FirstToken | undefined;

  constructor(options: JoinStoreOptions, push: Push) {
    const { opened, settings, limiter, policies, topic, log, ownHotKeys, rolloutTime } = options;
    const { store, node } = opened;
    this.#options = options;
    this.#push = push;
    this.figures = new StoreMetrics(() => this.#readFigures());
    this.#follower = new Follower({
      ...{ store, limiter, policies, figures: this.figures, topic, log },
      graceMs: settings.storeGraceMs,
      lookEveryMs: options.lookEveryMs,
      useTokens: (tokens) => this.#access?.useTokens(knownTokens(tokens)),
      onResets: (resets) => void this.#forgetResets(resets),
      onApplied: (stored, source) => this.#onApplied(stored, source),
    });
    this.#publisher = topic && new TopicPublisher({ topic, read: () => this.#readCurrent() });
    this.#control = createControlPlane({
      ...{ store, node: node.id, limiter, log, hotKeys: ownHotKeys },
      announce: (generation) => this.#announce(generation),
      files: () => policies.files,
      precedence: settings.precedence,
      ipv6PrefixBits: settings.ipv6PrefixBits,
      usageBy: settings.usageBy,
      flushDenials: async () => this.#denials?.flush(),
      // Each request may meet another worker.
      usageTail: options.worker === undefined ? options.usageTail : undefined,
      whatIf: options.worker === undefined ? { node: node.name, recordings: keepRecordings(options) } : undefined,
      nowMs: rolloutTime?.nowMs,
    });
  }

  /** Undefined if the admin port is off. */
  get control(): ControlPlane | undefined {
    return this.#options.settings.adminPort === undefined ? undefined : this.#control;
  }

  /** The first admin token, if this start created it: it is shown once. */
  get firstToken(): FirstToken | undefined {
    return this.#firstToken;
  }

  /** Access that also accepts tokens of the store, and records their use. */
  watch<A extends RunningAccess>(access: A): A {
    return this.#uses.watch(access);
  }

  /** Applies the store's policies before any caller is served, and follows the store afterwards. */
  async start(access: RunningAccess): Promise<void> {
    const { opened, settings, log, rolloutTime } = this.#options;
    const { store, node, kept, reached } = opened;
    this.#access = access;
    try {
      if (reached) await this.#prepareStore();
      await this.#follower.start(kept?.stored, kept?.keptIn);
    } catch (error) {
      if (!isStoreUnavailable(error)) throw error;
      throw new SettingError(["store"], `${(error as Error).message}; it was available a moment ago, so start again`);
    }
    this.#push.listen((generation) => this.#follower.announced(generation));
    this.#publisher?.start();
    this.#reports = createNodeReports({
      ...{ store, id: node.id, log },
      read: (seenMs) => this.#readNode(seenMs),
      also: (note) => this.#uses.write(note),
    });
    const { usage, denials } = this.#options;
    this.#usage = usage && new UsageFlusher({ sums: usage, store, node: node.name, boot: node.id, log });
    const { ipv6PrefixBits, denialRetentionMs } = settings;
    this.#denials = denials && new DenialFlusher({ samples: denials, store, node: node.name, ipv6PrefixBits, log });
    this.#jobs = createJobs({
      ...{ store, node: node.id, log, auditKeptMs: settings.auditRetentionMs },
      usageKept: { minutesMs: settings.usageRetentionMs, totalsMs: settings.usageTotalsRetentionMs },
      denialsKeptMs: denialRetentionMs,
      announce: (generation) => this.#announce(generation),
      ...{ nowMs: rolloutTime?.nowMs, everyMs: rolloutTime?.everyMs },
    });
  }

  /** Looks at the store now. */
  look(): Promise<void> {
    return this.#follower.look();
  }

  report(): StoreReport {
    const { opened, limiter, policies, settings, topic } = this.#options;
    const { store, node } = opened;
    const { killSwitch, takenUpMs, ...status } = this.#follower.status;
    const { forced } = limiter;
    return {
      ...status,
      kind: store.kind,
      at: store.where,
      takenUpAtMs: takenUpMs,
      push: { kind: this.#push.kind, connected: this.#push.connected, topicGeneration: topic?.generation },
      killSwitch: forced && { ...forced, reason: killSwitch?.reason ?? "", author: killSwitch?.author ?? "" },
      disabled: this.#disabledNow.map(({ reason = "", ...one }) => ({ ...one, reason })),
      blocked: this.#blockedNow,
      overridden: policies.overridden.map(renderOverridden),
      precedence: settings.precedence,
      node,
    };
  }

  async close(): Promise<void> {
    this.#publisher?.close();
    this.#push.close();
    this.#follower.close();
    const rest = Promise.all([
      this.#control.close(),
      this.#jobs?.close(),
      this.#usage?.close(),
      this.#denials?.close(),
    ]);
    await Promise.all([finishWithin(rest, this.#options.log), this.#reports?.close()]);
  }

  /** If something was kept on disk, a store that became unavailable meanwhile does not prevent the start. */
  async #prepareStore(): Promise<void> {
    const { opened, settings, log } = this.#options;
    const { store, kept } = opened;
    try {
      await seedStore(this.#control, settings, store, log);
      if (settings.adminPort !== undefined) this.#firstToken = await makeFirstToken(store, settings, log);
    } catch (error) {
      if (kept === undefined || !isStoreUnavailable(error)) throw error;
    }
  }

  #announce(generation: number): void {
    this.#publisher?.changed(generation);
    this.#follower.announced(generation);
    this.#push.announce(generation);
  }

  #onApplied(stored: StoredGeneration, source: GenerationSource): void {
    const { opened, keeper, worker } = this.#options;
    this.#reports?.report();
    if (source === "store") this.#publisher?.applied(stored);
    // Among several processes, one is enough to keep what all of them use.
    if (source === "store" && (worker ?? 1) === 1) void keeper.keepStored({ ...stored, store: opened.store.where });
  }

  /** Resets made by other nodes: counters on a server are done, those in this process remain. */
  async #forgetResets(resets: readonly AuditRecord[]): Promise<void> {
    const { opened, limiter, log } = this.#options;
    for (const record of resets) {
      const reset = readAuditedReset(record);
      if (reset === undefined || reset.node === opened.node.id) continue;
      await resetCounters(limiter, reset.wish, { reach: "process" }).catch((error: unknown) =>
        log.warn("store.reset_failed", { err: error, audit: record.id }),
      );
    }
  }

  /** What is in force, if it is the store's newest generation as far as this node knows. */
  #readCurrent(): StoredGeneration | undefined {
    const { state, source } = this.#follower.status;
    return state === "current" && source === "store" ? this.#follower.stored : undefined;
  }

  get #disabledNow(): readonly DisabledPolicy[] {
    const nowMs = Date.now();
    return (this.#options.limiter.snapshot.policySet.disabled ?? []).filter(({ untilMs }) => nowMs < untilMs);
  }

  get #blockedNow(): number {
    const nowMs = Date.now();
    const { blocks = [] } = this.#options.limiter.snapshot.policySet;
    return blocks.reduce((count, { untilMs }) => (nowMs < untilMs ? count + 1 : count), 0);
  }

  #readFigures(): StoreReading {
    const { policies, limiter, topic } = this.#options;
    const { state, newest, generation, problems } = this.#follower.status;
    return {
      ...{ state, newest, generation, problems: problems.length, overridden: policies.overridden.length },
      pushed: this.#push.connected,
      topic: topic && { generation: topic.generation ?? 0, ...topic.stats },
      killSwitch: limiter.forced?.mode,
      disabled: this.#disabledNow.length,
      blocked: this.#blockedNow,
      usage: { ...noUsage, ...this.#usage?.stats, untracked: this.#options.usage?.untracked ?? 0 },
      denials: this.#denials?.stats ?? noDenials,
    };
  }

  #readNode(seenMs: number): NodeRecord {
    const { opened, limiter, policies, hotKeys, startedMs, worker } = this.#options;
    const { id, name } = opened.node;
    const { generation, takenUpMs, state, source } = this.#follower.status;
    const { kind, connected } = this.#push;
    const details = {
      pid: process.pid,
      ...(worker === undefined ? undefined : { worker }),
      ...{ state, source, push: kind, push_connected: connected, kill_switch: limiter.forced?.mode },
      ...{ policies: countPolicies(limiter.snapshot.policySet), overridden: policies.overridden.length },
      [hotKeysDetail]: encodeReport(reportHotKeys(hotKeys, reportedHotKeys)),
    };
    return {
      ...{ id, name, version, startedMs, seenMs, generation, appliedMs: takenUpMs },
      details: JSON.stringify(details),
    };
  }
}

/** Undefined without a folder for them. */
function keepRecordings({ settings, recorder, limiter, opened, log }: JoinStoreOptions): KeptRecordings | undefined {
  const { recordings: folder, recordingsBytes: maxFolderBytes, recordingsRetentionMs: keptMs } = settings;
  if (folder === undefined) return undefined;
  return new KeptRecordings({
    ...{ recorder, folder, maxFolderBytes, keptMs, node: opened.node.name, nowMs: Date.now, log },
    generation: () => limiter.snapshot.generation,
  });
}

/** Usable tokens; expiry is checked at each use. */
function knownTokens(tokens: readonly TokenRecord[]): Parameters<RunningAccess["useTokens"]>[0] {
  return tokens.flatMap(({ id, name, role, team, sha256, expiresMs, revokedMs }) =>
    revokedMs === undefined && isRole(role) ? [{ id, name, role, team, sha256, expiresMs }] : [],
  );
}

function isRole(word: string): word is Role {
  return (roles as readonly string[]).includes(word);
}
