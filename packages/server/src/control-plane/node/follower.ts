import { setTimeout as pause } from "node:timers/promises";
import {
  type AuditRecord,
  type KillSwitchRecord,
  type PolicyStore,
  PolicyStoreUnavailable,
  type Pulse,
  type TokenRecord,
} from "@sluice/sql";
import type { Limiter, Problem } from "sluice";
import type { Logger } from "../../observe/telemetry/logger.ts";
import type { StoreMetrics } from "../../observe/telemetry/store-metrics.ts";
import { withDeadline } from "../../with-deadline.ts";
import type { StoredGeneration } from "../documents/stored-generation.ts";
import { AppliedGeneration, type GenerationSource } from "./applied-generation.ts";
import { createKillSwitchFollower } from "./kill-switch-follower.ts";
import type { PoliciesInForce } from "./policies-in-force.ts";
import { type ReadGeneration, readGeneration } from "./read-generation.ts";
import { ReceivedKillSwitch } from "./received-kill-switch.ts";
import { StoreHealth } from "./store-health.ts";

/** A node's state with respect to the policy store. */
export interface FollowerStatus {
  /**
   * `current`: decides by the store's policies, as of the latest look. `stale`: the newest generation cannot be
   * applied. `away`: the store is unavailable, and the last known policies stay in force. `expired`: the same, for
   * longer than the grace.
   */
  readonly state: "current" | "stale" | "away" | "expired";
  /** Why it is not current. */
  readonly reason: string | undefined;
  /** Undefined while the store is available. */
  readonly awaySinceMs: number | undefined;
  /** The generation in force; 0 before there is any. */
  readonly generation: number;
  /** The newest known generation. */
  readonly newest: number;
  readonly takenUpMs: number;
  /** The source of that generation: the store itself, the file that keeps it, or the Kafka topic that carries it. */
  readonly source: GenerationSource;
  /** A digest of the store's policies: SHA-256 in hexadecimal digits. */
  readonly digest: string;
  /** The problems that cause parts of that generation to be left out. */
  readonly problems: readonly Problem[];
  /** The switch as last received, even when it has ended; the limiter decides whether it is on. */
  readonly killSwitch: KillSwitchRecord | undefined;
}

export interface FollowerOptions {
  readonly store: Pick<PolicyStore, "readPulse" | "read" | "where">;
  readonly limiter: Pick<Limiter, "force" | "snapshot">;
  readonly policies: Pick<PoliciesInForce, "useStored" | "files">;
  readonly figures: Pick<StoreMetrics, "countApplied" | "countNotified" | "countFoundByPolling" | "countRefused">;
  readonly log: Logger;
  /** Called with the tokens at every read, even if policies of the same generation are refused. */
  readonly useTokens: (tokens: readonly TokenRecord[]) => void;
  /** Called with resets made since the previously applied generation, oldest first. */
  readonly onResets: (resets: readonly AuditRecord[]) => void;
  /** Called with everything that was applied. */
  readonly onApplied: (applied: StoredGeneration, source: GenerationSource) => void;
  /** Where newer generations may be found while the store is unavailable. */
  readonly topic?: TopicGenerations | undefined;
  /** How long the store may be unavailable before that is an error. */
  readonly graceMs: number;
  /** The longest interval between looks at the generation; everything is read again every `rereadMs`. */
  readonly lookEveryMs?: number | undefined;
  readonly rereadMs?: number | undefined;
  /** How long the store has to show an older generation before that is believed. */
  readonly goneBackAfterMs?: number | undefined;
  readonly nowMs?: (() => number) | undefined;
  /** A monotonic clock. */
  readonly steadyMs?: (() => number) | undefined;
}

/** A Kafka topic that carries generations. */
export interface TopicGenerations {
  /** The newest one that is complete. */
  readonly generation: number | undefined;
  /** Resolves with that one; undefined if it cannot be used. */
  read(): Promise<StoredGeneration | undefined>;
}

const lookWithinMs = 5_000;
const readWithinMs = 30_000;

/**
 * Keeps a node's policies those of the store: the newest generation, whole. It looks at the generation when a change is
 * announced and every `lookEveryMs`, and reads everything when that is newer, or older for long enough, or due:
 *
 *     idle ──announced, timer──► looking ──newer, gone back, due──► reading ──► applied, or refused ──► idle
 *      ▲                            │ nothing new, or no answer        │ announced meanwhile: the kill switch alone
 *      └────────────────────────────┘                                  └──► glancing, and looking again after it
 */
export class Follower {
  readonly #options: FollowerOptions;
  readonly #lookEveryMs: number;
  readonly #rereadMs: number;
  readonly #goneBackAfterMs: number;
  readonly #nowMs: () => number;
  readonly #steadyMs: () => number;
  readonly #applied: AppliedGeneration;
  readonly #health: StoreHealth;
  readonly #killSwitch: ReceivedKillSwitch;
  readonly #ended = new AbortController();
  /** The newest generation that the store was seen to have. */
  #newest = 0;
  #readAtMs = Number.NEGATIVE_INFINITY;
  /** The generation up to which resets are known. Undefined before the first read. */
  #resetsUntil: number | undefined;
  /** Since when the store has had an older generation. */
  #backSinceMs: number | undefined;
  #running: Promise<void> | undefined;
  #reading = false;
  #glancing = false;
  /** A look requested during another. */
  #again: { readonly byPush: boolean } | undefined;

  constructor(options: FollowerOptions) {
    const { store, limiter, log } = options;
    const { lookEveryMs = 700, rereadMs = 60_000, goneBackAfterMs = 10_000, nowMs = Date.now } = options;
    const steadyMs = options.steadyMs ?? ((): number => performance.now());
    this.#options = options;
    this.#lookEveryMs = lookEveryMs;
    this.#rereadMs = rereadMs;
    this.#goneBackAfterMs = goneBackAfterMs;
    this.#nowMs = nowMs;
    this.#steadyMs = steadyMs;
    const { where } = store;
    this.#applied = new AppliedGeneration({ ...options, where, nowMs, ended: this.#ended.signal });
    this.#health = new StoreHealth({ where, log, graceMs: options.graceMs, nowMs, steadyMs });
    this.#killSwitch = new ReceivedKillSwitch(createKillSwitchFollower(limiter, log, nowMs), steadyMs);
  }

  /**
   * Applies the store's policies, or those kept on disk or in a topic while the store is unavailable. Rejects with the
   * store's error if there are neither. Follows the store afterwards.
   */
  async start(kept: StoredGeneration | undefined, keptIn: "snapshot" | "topic" = "snapshot"): Promise<void> {
    await this.#run(false);
    if (this.#applied.current === undefined && kept !== undefined) await this.#applyKept(kept, keptIn);
    if (this.#applied.current === undefined)
      throw new PolicyStoreUnavailable(this.#reason ?? "the policy store cannot be used");
    void this.#follow();
  }

  /** There may be a newer generation. If one is named, looks only if that is newer. */
  announced(generation?: number): void {
    if (this.#closed || (generation !== undefined && generation <= (this.#applied.generation ?? -1))) return;
    if (generation !== undefined) this.#options.figures.countNotified();
    void this.#run(true);
  }

  /** The generation in force; undefined before there is any. */
  get stored(): StoredGeneration | undefined {
    return this.#applied.current?.stored;
  }

  /** Looks now. Never rejects. */
  look(): Promise<void> {
    return this.#run(false);
  }

  get status(): FollowerStatus {
    const { current, refused, problems } = this.#applied;
    const { outage } = this.#health;
    const generation = this.#applied.generation ?? 0;
    return {
      state: outage !== undefined ? (outage.expired ? "expired" : "away") : refused !== undefined ? "stale" : "current",
      reason: this.#reason,
      awaySinceMs: outage?.sinceMs,
      generation,
      newest: Math.max(this.#newest, generation),
      takenUpMs: current?.atMs ?? 0,
      source: current?.source ?? "store",
      digest: current?.digest ?? "",
      problems,
      killSwitch: this.#killSwitch.record,
    };
  }

  /** Does not wait for work in progress: the store may not answer, and its answer is ignored. */
  close(): void {
    this.#ended.abort();
  }

  get #closed(): boolean {
    return this.#ended.signal.aborted;
  }

  /** The reason why the node is not current. */
  get #reason(): string | undefined {
    return this.#health.outage?.reason ?? this.#applied.refused?.reason;
  }

  async #applyKept(kept: StoredGeneration, keptIn: "snapshot" | "topic"): Promise<void> {
    const { store, log, useTokens } = this.#options;
    this.#killSwitch.receive(kept, { askedMs: undefined });
    useTokens(kept.tokens);
    if (!(await this.#applied.apply(kept, keptIn))) return;
    const event = keptIn === "topic" ? "store.started_from_topic" : "store.started_from_snapshot";
    log.error(event, { store: store.where, generation: kept.generation, reason: this.#reason });
  }

  /** Applies a newer generation from the topic. While the store answers, it alone says what is in force. */
  async #applyFromTopic(): Promise<void> {
    const { topic, figures, useTokens } = this.#options;
    const before = this.#applied.generation;
    const newest = topic?.generation;
    // Before the start, `start` decides which policies to begin with.
    if (topic === undefined || newest === undefined || before === undefined || newest <= before) return;
    if (newest === this.#applied.refused?.generation) return;
    const stored = await topic.read();
    if (stored === undefined || stored.generation <= before || this.#closed) return;
    this.#killSwitch.receive(stored, { askedMs: undefined });
    useTokens(stored.tokens);
    if (await this.#applied.apply(stored, "topic")) figures.countApplied(undefined);
  }

  async #follow(): Promise<void> {
    const { signal } = this.#ended;
    while (!this.#closed) {
      // Nodes do not all look at the same moment, and none looks late.
      const waitMs = this.#lookEveryMs * (0.8 + Math.random() * 0.2);
      await pause(waitMs, undefined, { ref: false, signal }).catch(() => undefined);
      // Does not wait for a slow look, because the next one may see the kill switch.
      if (!this.#closed) void this.#run(false);
    }
  }

  #run(byPush: boolean): Promise<void> {
    if (this.#running !== undefined) {
      this.#again = { byPush: byPush || this.#again?.byPush === true };
      if (this.#reading) void this.#glance();
      return this.#running;
    }
    this.#running = this.#lookWhileAsked(byPush).finally(() => {
      this.#running = undefined;
    });
    return this.#running;
  }

  async #lookWhileAsked(byPush: boolean): Promise<void> {
    let next: { readonly byPush: boolean } | undefined = { byPush };
    while (next !== undefined && !this.#closed) {
      this.#again = undefined;
      try {
        await this.#lookOnce(next.byPush);
      } catch (error) {
        if (this.#closed) return;
        this.#health.missed(error, this.#applied.generation);
        await this.#applyFromTopic();
      }
      next = this.#again;
    }
  }

  async #lookOnce(byPush: boolean): Promise<void> {
    const { pulse, askedMs } = await this.#readPulse();
    if (this.#closed) return;
    const goneBack = this.#hasGoneBack(pulse.generation);
    this.#killSwitch.receive(pulse, { askedMs, goneBack });
    this.#newest = pulse.generation;
    const current = this.#applied.generation ?? -1;
    const isRefused = pulse.generation === this.#applied.refused?.generation;
    const isNew = pulse.generation > current && !isRefused;
    const isOld = goneBack && !isRefused;
    const isDue = this.#steadyMs() - this.#readAtMs >= this.#rereadMs && (pulse.generation >= current || goneBack);
    if (isNew && !byPush && this.#applied.current !== undefined) this.#options.figures.countFoundByPolling();
    if (isNew || isOld || isDue) await this.#readWhole(goneBack);
    this.#health.reached(this.#applied.generation);
  }

  /** Whether to believe an older generation: a store restored from a backup stays behind, a lagging one catches up. */
  #hasGoneBack(generation: number): boolean {
    if (generation >= Math.max(this.#applied.generation ?? 0, this.#killSwitch.generation)) {
      this.#backSinceMs = undefined;
      return false;
    }
    this.#backSinceMs ??= this.#steadyMs();
    return this.#steadyMs() - this.#backSinceMs >= this.#goneBackAfterMs;
  }

  async #readPulse(): Promise<{ readonly pulse: Pulse; readonly askedMs: number }> {
    const askedMs = this.#steadyMs();
    return { pulse: await withDeadline(this.#options.store.readPulse(), lookWithinMs, silence), askedMs };
  }

  /** Reads the switch alone, which does not wait for a slow read of everything. The look reports outages. */
  async #glance(): Promise<void> {
    if (this.#glancing) return;
    this.#glancing = true;
    try {
      const { pulse, askedMs } = await this.#readPulse();
      if (!this.#closed) this.#killSwitch.receive(pulse, { askedMs });
    } catch {
      return;
    } finally {
      this.#glancing = false;
    }
  }

  async #readWhole(goneBack: boolean): Promise<void> {
    this.#reading = true;
    try {
      const askedMs = this.#steadyMs();
      const since = this.#resetsUntil;
      const work = this.#options.store.read((view) => readGeneration(view, since));
      const read = await withDeadline(work, readWithinMs, silence);
      if (!this.#closed) await this.#applyRead(read, { askedMs, goneBack });
    } finally {
      this.#reading = false;
    }
  }

  async #applyRead(
    { stored, changedMs, resets }: ReadGeneration,
    asked: { readonly askedMs: number; readonly goneBack: boolean },
  ): Promise<void> {
    const { store, log, figures, useTokens, onResets } = this.#options;
    const { generation } = stored;
    this.#readAtMs = this.#steadyMs();
    this.#newest = generation;
    const before = this.#applied.generation;
    const isOlder = before !== undefined && generation < before;
    if (isOlder && !asked.goneBack) return;
    this.#killSwitch.receive(stored, asked);
    if (isOlder) log.warn("store.generation_went_back", { store: store.where, from: before, to: generation });
    useTokens(stored.tokens);
    if (await this.#applied.apply(stored, "store")) this.#backSinceMs = undefined;
    // Even if the policies are refused: each reset is handed over once.
    this.#resetsUntil = generation;
    if (resets.length > 0) onResets(resets);
    if (before !== undefined && before !== generation)
      figures.countApplied(changedMs === undefined ? undefined : Math.max(0, this.#nowMs() - changedMs) / 1_000);
  }
}

function silence(): Error {
  return new PolicyStoreUnavailable("the policy store does not answer");
}
