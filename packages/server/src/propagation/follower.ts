import { setTimeout as pause } from "node:timers/promises";
import { type KillSwitchRecord, type PolicyStore, PolicyStoreUnavailable } from "@sluice/sql";
import type { Limiter, Problem } from "sluice";
import { digestOf, readStored, type StoredGeneration } from "../control/assemble-stored.ts";
import { composePolicySet } from "../control/compose-policy-set.ts";
import { createDocumentReader } from "../control/read-documents.ts";
import type { Logger } from "../telemetry/logger.ts";
import type { StoreFigures } from "../telemetry/store-families.ts";
import { withDeadline } from "../with-deadline.ts";
import { obeyKillSwitch } from "./obey-kill-switch.ts";
import type { PoliciesInForce } from "./policies-in-force.ts";

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
  readonly source: "store" | "snapshot";
  /** Of the policies in the store: SHA-256 in hexadecimal digits. */
  readonly digest: string;
  /** What of that generation is left out, and why. */
  readonly problems: readonly Problem[];
  /** The switch as it was heard of last, also when it has ended; whether it holds is for the limiter to say. */
  readonly killSwitch: KillSwitchRecord | undefined;
}

/** Keeps a node's policies those of the store: the newest generation, whole. */
export interface Follower {
  /**
   * Takes up what the store has, or, while it cannot be asked, what was kept of it. Rejects with what the store says where there
   * is neither. From then on it follows.
   */
  start(kept: StoredGeneration | undefined): Promise<void>;
  /** There may be a newer generation; where one is named, only if it is newer. */
  heard(generation?: number): void;
  /** Looks now. Never rejects. */
  look(): Promise<void>;
  readonly status: FollowerStatus;
  close(): Promise<void>;
}

export interface FollowerOptions {
  readonly store: Pick<PolicyStore, "readPulse" | "read" | "where">;
  readonly limiter: Pick<Limiter, "force">;
  readonly policies: Pick<PoliciesInForce, "useStored">;
  readonly figures: Pick<StoreFigures, "countTakenUp" | "countHeard" | "countFoundByLooking" | "countRefused">;
  readonly log: Logger;
  /** Hears of every generation that was taken up. */
  readonly onTaken: (taken: StoredGeneration, source: FollowerStatus["source"]) => void;
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
/** The newest audit records, among which the change should be that made a generation. */
const auditLooked = 20;

interface Taken {
  readonly stored: StoredGeneration;
  readonly source: FollowerStatus["source"];
  readonly digest: string;
  readonly atMs: number;
}

export function createFollower(options: FollowerOptions): Follower {
  const { store, policies, figures, log, onTaken, graceMs } = options;
  const { lookEveryMs = 700, rereadMs = 60_000, goneBackAfterMs = 10_000, nowMs = Date.now } = options;
  const steadyMs = options.steadyMs ?? ((): number => performance.now());
  const killSwitch = obeyKillSwitch(options.limiter, log, nowMs);
  const reader = createDocumentReader();
  let taken: Taken | undefined;
  let problems: readonly Problem[] = [];
  let newest = 0;
  /** The generation that could not be taken up, and why. */
  let refused: { readonly generation: number; readonly reason: string } | undefined;
  let away: { readonly sinceMs: number; readonly steadySinceMs: number; reason: string; expired: boolean } | undefined;
  let readAtMs = Number.NEGATIVE_INFINITY;
  let backSinceMs: number | undefined;
  let running: Promise<void> | undefined;
  let again = false;
  let closed = false;
  const stop = new AbortController();

  function missed(error: unknown): void {
    const reason = error instanceof Error ? error.message : String(error);
    if (away === undefined) {
      away = { sinceMs: nowMs(), steadySinceMs: steadyMs(), reason, expired: false };
      if (taken !== undefined)
        log.warn(
          { store: store.where, reason, generation: taken.stored.generation },
          "the policy store cannot be reached; the last good policies stay, and it is asked again",
        );
    }
    away.reason = reason;
    if (away.expired || taken === undefined || steadyMs() - away.steadySinceMs < graceMs) return;
    away.expired = true;
    log.error(
      { store: store.where, reason, generation: taken.stored.generation, since: new Date(away.sinceMs).toISOString() },
      "the policy store has been out of reach for longer than its grace; the last good policies still decide",
    );
  }

  function reached(): void {
    if (away !== undefined && taken !== undefined)
      log.info(
        { store: store.where, awayMs: Math.round(steadyMs() - away.steadySinceMs) },
        "the policy store can be reached again",
      );
    away = undefined;
  }

  /** Whether an older generation is believed: a store that was restored from a backup stays behind, one that lags does not. */
  function hasGoneBack(generation: number): boolean {
    if (taken === undefined || generation >= taken.stored.generation) {
      backSinceMs = undefined;
      return false;
    }
    backSinceMs ??= steadyMs();
    return steadyMs() - backSinceMs >= goneBackAfterMs;
  }

  async function lookOnce(byPush: boolean): Promise<void> {
    const pulse = await withDeadline(store.readPulse(), lookWithinMs, silence);
    if (closed) return;
    killSwitch.hear(pulse.killSwitch);
    newest = pulse.generation;
    const current = taken?.stored.generation ?? -1;
    const goneBack = hasGoneBack(pulse.generation);
    const isNew = pulse.generation > current && pulse.generation !== refused?.generation;
    const isDue = steadyMs() - readAtMs >= rereadMs && pulse.generation >= current;
    if (isNew && !byPush && taken !== undefined) figures.countFoundByLooking();
    if (isNew || isDue || goneBack) await readWhole(goneBack);
    reached();
  }

  async function readWhole(goneBack: boolean): Promise<void> {
    const { stored, changedMs } = await withDeadline(store.read(readWithTime), readWithinMs, silence);
    if (closed) return;
    readAtMs = steadyMs();
    newest = stored.generation;
    const before = taken?.stored.generation;
    if (before !== undefined && stored.generation < before && !goneBack) return;
    killSwitch.hear(stored.killSwitch);
    if (goneBack)
      log.warn(
        { store: store.where, from: before, to: stored.generation },
        "the policy store has an older generation than this node, as after a restored backup; what it has is taken up",
      );
    takeUp(stored, "store");
    if (before !== undefined && before !== stored.generation)
      figures.countTakenUp(changedMs === undefined ? undefined : Math.max(0, nowMs() - changedMs) / 1_000);
  }

  function takeUp(stored: StoredGeneration, source: FollowerStatus["source"]): void {
    const { generation } = stored;
    const before = taken;
    try {
      const digest = use(stored, before?.digest);
      const isNew = before === undefined || before.stored.generation !== generation || before.source !== source;
      taken = { stored, source, digest, atMs: isNew ? nowMs() : before.atMs };
      refused = undefined;
      backSinceMs = undefined;
      if (!isNew) return;
      log.info(
        { store: store.where, generation, policies: stored.rows.policies.length, source },
        digest === before?.digest
          ? "a generation without other policies was taken up"
          : "policies of the store were taken up",
      );
      onTaken(stored, source);
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error);
      if (refused?.generation !== generation || refused.reason !== reason) {
        figures.countRefused();
        log.error(
          { store: store.where, generation, err: error },
          "policies of the store cannot be taken up; the last good ones stay",
        );
      }
      refused = { generation, reason };
    }
  }

  /** Has the policies decide, where they differ from those in force. */
  function use(stored: StoredGeneration, digestBefore: string | undefined): string {
    const digest = digestOf(stored.rows);
    if (digest === digestBefore && refused === undefined) return digest;
    // Composed anew whenever files change, because it may refer to what is in them.
    policies.useStored((files) => {
      const composed = composePolicySet(stored.rows, nowMs(), { reader, files });
      reader.sweep();
      tellProblems(composed.problems);
      return composed.policySet;
    });
    return digest;
  }

  function tellProblems(found: readonly Problem[]): void {
    const isNew = JSON.stringify(found) !== JSON.stringify(problems);
    problems = found;
    if (isNew && found.length > 0)
      log.error(
        { store: store.where, errors: found.length, problems: found.slice(0, maxTold) },
        "some of the policy store cannot be used and is left out; the rest is in force",
      );
  }

  function run(byPush: boolean): Promise<void> {
    if (running !== undefined) {
      again = true;
      return running;
    }
    running = (async () => {
      let pushed = byPush;
      do {
        again = false;
        await lookOnce(pushed).catch((error: unknown) => {
          if (!closed) missed(error);
        });
        pushed = true;
      } while (again && !closed);
    })().finally(() => {
      running = undefined;
    });
    return running;
  }

  async function follow(): Promise<void> {
    while (!closed) {
      // Not all nodes at the same moment, and none later than said.
      const waitMs = lookEveryMs * (0.8 + Math.random() * 0.2);
      await pause(waitMs, undefined, { ref: false, signal: stop.signal }).catch(() => undefined);
      if (!closed) await run(false);
    }
  }

  return {
    async start(kept): Promise<void> {
      await run(false);
      if (taken === undefined && kept !== undefined) {
        killSwitch.hear(kept.killSwitch);
        takeUp(kept, "snapshot");
        if (taken !== undefined)
          log.error(
            { store: store.where, generation: kept.generation, reason: away?.reason ?? refused?.reason },
            "the policy store cannot be used; the policies that were kept of it decide, and it is asked again",
          );
      }
      if (taken === undefined)
        throw new PolicyStoreUnavailable(away?.reason ?? refused?.reason ?? "the policy store cannot be used");
      void follow();
    },
    heard(generation): void {
      if (closed || (generation !== undefined && generation <= (taken?.stored.generation ?? -1))) return;
      if (generation !== undefined) figures.countHeard();
      void run(true);
    },
    look: () => run(false),
    get status(): FollowerStatus {
      return {
        state: away !== undefined ? (away.expired ? "expired" : "away") : refused !== undefined ? "stale" : "current",
        reason: away?.reason ?? refused?.reason,
        awaySinceMs: away?.sinceMs,
        generation: taken?.stored.generation ?? 0,
        newest: Math.max(newest, taken?.stored.generation ?? 0),
        takenUpMs: taken?.atMs ?? 0,
        source: taken?.source ?? "store",
        digest: taken?.digest ?? "",
        problems,
        killSwitch: killSwitch.heard,
      };
    },
    async close(): Promise<void> {
      closed = true;
      stop.abort();
      await running;
    },
  };
}

const maxTold = 20;

/** One generation, and when the change was made that it is, where that can be told. */
async function readWithTime(
  view: Parameters<Parameters<PolicyStore["read"]>[0]>[0],
): Promise<{ readonly stored: StoredGeneration; readonly changedMs: number | undefined }> {
  const stored = await readStored(view);
  const records = await view.audit({ limit: auditLooked });
  return { stored, changedMs: records.find(({ generation }) => generation === stored.generation)?.atMs };
}

function silence(): Error {
  return new PolicyStoreUnavailable("the policy store does not answer");
}
