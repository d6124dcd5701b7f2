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
import type { StoreFigures } from "../../observe/telemetry/store-families.ts";
import { withDeadline } from "../../with-deadline.ts";
import type { StoredGeneration } from "../documents/assemble-stored.ts";
import { AppliedGeneration, type GenerationSource } from "./applied-generation.ts";
import { HeardKillSwitch } from "./heard-kill-switch.ts";
import { obeyKillSwitch } from "./obey-kill-switch.ts";
import type { PoliciesInForce } from "./policies-in-force.ts";
import { type ReadGeneration, readGeneration } from "./read-generation.ts";
import { StoreHealth } from "./store-health.ts";

/** How a node stands to the policy store. */
export interface FollowerStatus {
  /**
   * `current`: decides by what the store has, as of the latest look. `stale`: the newest generation cannot be taken up.
   * `away`: the store cannot be asked, and what was heard last holds. `expired`: the same, for longer than the grace.
   */
  readonly state: "current" | "stale" | "away" | "expired";
  /** Why it is not current. */
  readonly reason: string | undefined;
  /** Undefined while the store can be asked. */
  readonly awaySinceMs: number | undefined;
  /** The generation that is decided by; 0 before there is any. */
  readonly generation: number;
  /** The newest that is known of. */
  readonly newest: number;
  readonly takenUpMs: number;
  /** Where that generation came from: the store itself, or the file that keeps it. */
  readonly source: GenerationSource;
  /** Of the policies in the store: SHA-256 in hexadecimal digits. */
  readonly digest: string;
  /** What of that generation is left out, and why. */
  readonly problems: readonly Problem[];
  /** The switch as it was heard of last, also when it has ended; whether it holds is for the limiter to say. */
  readonly killSwitch: KillSwitchRecord | undefined;
}

export interface FollowerOptions {
  readonly store: Pick<PolicyStore, "readPulse" | "read" | "where">;
  readonly limiter: Pick<Limiter, "force" | "snapshot">;
  readonly policies: Pick<PoliciesInForce, "useStored" | "files">;
  readonly figures: Pick<StoreFigures, "countTakenUp" | "countHeard" | "countFoundByLooking" | "countRefused">;
  readonly log: Logger;
  /** Hears of the tokens at every read, also where policies of the same generation are refused. */
  readonly useTokens: (tokens: readonly TokenRecord[]) => void;
  /** Hears of resets that were made since the generation that was taken up before, oldest first. */
  readonly onResets: (resets: readonly AuditRecord[]) => void;
  /** Hears of everything that was taken up. */
  readonly onTaken: (taken: StoredGeneration, source: GenerationSource) => void;
  /** How long the store may be away before that is an error. */
  readonly graceMs: number;
  /** After how long the generation is looked at again, at most; the whole is read every `rereadMs`. */
  readonly lookEveryMs?: number | undefined;
  readonly rereadMs?: number | undefined;
  /** For how long the store has to have an older generation before that is believed. */
  readonly goneBackAfterMs?: number | undefined;
  readonly nowMs?: (() => number) | undefined;
  /** Steady, for spans. */
  readonly steadyMs?: (() => number) | undefined;
}

const lookWithinMs = 5_000;
const readWithinMs = 30_000;

/**
 * Keeps a node's policies those of the store: the newest generation, whole. It looks at the generation when it hears of a change and
 * every `lookEveryMs`, and reads the whole when that is newer, or older for long enough, or due:
 *
 *     idle ──heard, timer──► looking ──newer, gone back, due──► reading ──► applied, or refused ──► idle
 *      ▲                        │ nothing new, or no answer        │ heard meanwhile: the kill switch alone
 *      └────────────────────────┘                                  └──► glancing, and looking again after it
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
  readonly #killSwitch: HeardKillSwitch;
  readonly #ended = new AbortController();
  /** The newest generation that the store was seen to have. */
  #newest = 0;
  #readAtMs = Number.NEGATIVE_INFINITY;
  /** The generation up to which resets were heard of. Undefined before the first read. */
  #resetsUntil: number | undefined;
  /** Since when the store has had an older generation. */
  #backSinceMs: number | undefined;
  #running: Promise<void> | undefined;
  #reading = false;
  #glancing = false;
  /** A look that was asked for while one was running. */
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
    this.#killSwitch = new HeardKillSwitch(obeyKillSwitch(limiter, log, nowMs), steadyMs);
  }

  /**
   * Applies what the store has, or, while it cannot be asked, what was kept of it. Rejects with what the store says where there
   * is neither. From then on it follows.
   */
  async start(kept: StoredGeneration | undefined): Promise<void> {
    await this.#run(false);
    if (this.#applied.taken === undefined && kept !== undefined) await this.#applyKept(kept);
    if (this.#applied.taken === undefined)
      throw new PolicyStoreUnavailable(this.#reason ?? "the policy store cannot be used");
    void this.#follow();
  }

  /** There may be a newer generation; where one is named, only if it is newer. */
  heard(generation?: number): void {
    if (this.#closed || (generation !== undefined && generation <= (this.#applied.generation ?? -1))) return;
    if (generation !== undefined) this.#options.figures.countHeard();
    void this.#run(true);
  }

  /** Looks now. Never rejects. */
  look(): Promise<void> {
    return this.#run(false);
  }

  get status(): FollowerStatus {
    const { taken, refused, problems } = this.#applied;
    const { outage } = this.#health;
    const generation = this.#applied.generation ?? 0;
    return {
      state: outage !== undefined ? (outage.expired ? "expired" : "away") : refused !== undefined ? "stale" : "current",
      reason: this.#reason,
      awaySinceMs: outage?.sinceMs,
      generation,
      newest: Math.max(this.#newest, generation),
      takenUpMs: taken?.atMs ?? 0,
      source: taken?.source ?? "store",
      digest: taken?.digest ?? "",
      problems,
      killSwitch: this.#killSwitch.record,
    };
  }

  /** What is under way is not waited for: the store may not answer, and what comes is ignored. */
  close(): void {
    this.#ended.abort();
  }

  get #closed(): boolean {
    return this.#ended.signal.aborted;
  }

  /** Why the node is not current. */
  get #reason(): string | undefined {
    return this.#health.outage?.reason ?? this.#applied.refused?.reason;
  }

  async #applyKept(kept: StoredGeneration): Promise<void> {
    const { store, log, useTokens } = this.#options;
    this.#killSwitch.hear(kept, { askedMs: undefined });
    useTokens(kept.tokens);
    if (!(await this.#applied.apply(kept, "snapshot"))) return;
    log.error("store.started_from_snapshot", { store: store.where, generation: kept.generation, reason: this.#reason });
  }

  async #follow(): Promise<void> {
    const { signal } = this.#ended;
    while (!this.#closed) {
      // Not all nodes at the same moment, and none later than said.
      const waitMs = this.#lookEveryMs * (0.8 + Math.random() * 0.2);
      await pause(waitMs, undefined, { ref: false, signal }).catch(() => undefined);
      // A look that takes long is not waited for, because the next one may hear of the kill switch.
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
        if (!this.#closed) this.#health.missed(error, this.#applied.generation);
      }
      next = this.#again;
    }
  }

  async #lookOnce(byPush: boolean): Promise<void> {
    const { pulse, askedMs } = await this.#readPulse();
    if (this.#closed) return;
    const goneBack = this.#hasGoneBack(pulse.generation);
    this.#killSwitch.hear(pulse, { askedMs, goneBack });
    this.#newest = pulse.generation;
    const current = this.#applied.generation ?? -1;
    const isRefused = pulse.generation === this.#applied.refused?.generation;
    const isNew = pulse.generation > current && !isRefused;
    const isOld = goneBack && !isRefused;
    const isDue = this.#steadyMs() - this.#readAtMs >= this.#rereadMs && (pulse.generation >= current || goneBack);
    if (isNew && !byPush && this.#applied.taken !== undefined) this.#options.figures.countFoundByLooking();
    if (isNew || isOld || isDue) await this.#readWhole(goneBack);
    this.#health.reached(this.#applied.generation);
  }

  /** Whether an older generation is believed: a store that was restored from a backup stays behind, one that lags does not. */
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

  /** The switch alone, which does not wait for a whole that is long in coming, or long to be made ready. Outages are reported by the look. */
  async #glance(): Promise<void> {
    if (this.#glancing) return;
    this.#glancing = true;
    try {
      const { pulse, askedMs } = await this.#readPulse();
      if (!this.#closed) this.#killSwitch.hear(pulse, { askedMs });
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
    this.#killSwitch.hear(stored, asked);
    if (isOlder) log.warn("store.generation_went_back", { store: store.where, from: before, to: generation });
    useTokens(stored.tokens);
    if (await this.#applied.apply(stored, "store")) this.#backSinceMs = undefined;
    // Also where the policies are refused: each reset is heard of once.
    this.#resetsUntil = generation;
    if (resets.length > 0) onResets(resets);
    if (before !== undefined && before !== generation)
      figures.countTakenUp(changedMs === undefined ? undefined : Math.max(0, this.#nowMs() - changedMs) / 1_000);
  }
}

function silence(): Error {
  return new PolicyStoreUnavailable("the policy store does not answer");
}
