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
import { preparePolicy } from "sluice/policy-text";
import { countPolicies } from "../../data-plane/policy-files/count-policies.ts";
import type { Logger } from "../../observe/telemetry/logger.ts";
import type { StoreFigures } from "../../observe/telemetry/store-families.ts";
import { createTurns } from "../../turns.ts";
import { withDeadline } from "../../with-deadline.ts";
import { digestOf, readStored, type StoredGeneration } from "../documents/assemble-stored.ts";
import { type ComposedPolicies, composeInTurns, composePolicySet } from "../documents/compose-policy-set.ts";
import { createDocumentReader } from "../documents/read-documents.ts";
import { resetAction } from "../use-cases/reset-counters.ts";
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
  readonly limiter: Pick<Limiter, "force" | "snapshot">;
  readonly policies: Pick<PoliciesInForce, "useStored" | "files">;
  readonly figures: Pick<StoreFigures, "countTakenUp" | "countHeard" | "countFoundByLooking" | "countRefused">;
  readonly log: Logger;
  /** Hears of the tokens at every read, also where policies of the same generation are refused. */
  readonly useTokens: (tokens: readonly TokenRecord[]) => void;
  /** Hears of resets that were made since the generation that was taken up before, oldest first. */
  readonly onResets: (resets: readonly AuditRecord[]) => void;
  /** Hears of everything that was taken up. */
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
  const { store, limiter, policies, figures, log, useTokens, onResets, onTaken, graceMs } = options;
  const { lookEveryMs = 700, rereadMs = 60_000, goneBackAfterMs = 10_000, nowMs = Date.now } = options;
  const steadyMs = options.steadyMs ?? ((): number => performance.now());
  const killSwitch = obeyKillSwitch(limiter, log, nowMs);
  const reader = createDocumentReader();
  let taken: Taken | undefined;
  let problems: readonly Problem[] = [];
  let newest = 0;
  /** The generation that could not be taken up, and why. */
  let refused: { readonly generation: number; readonly reason: string } | undefined;
  let away: { readonly sinceMs: number; readonly steadySinceMs: number; reason: string; expired: boolean } | undefined;
  let readAtMs = Number.NEGATIVE_INFINITY;
  /** The generation up to which resets were heard of. Undefined before the first read. */
  let resetsUntil: number | undefined;
  let backSinceMs: number | undefined;
  /** Which generation the kill switch was heard with, and when the store was asked for it. */
  let switchHeard: { readonly generation: number; readonly askedMs: number | undefined } | undefined;
  let running: Promise<void> | undefined;
  let reading = false;
  let glancing = false;
  /** Somebody asked while it was running. */
  let again: { readonly byPush: boolean } | undefined;
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
    if (generation >= Math.max(taken?.stored.generation ?? 0, switchHeard?.generation ?? 0)) {
      backSinceMs = undefined;
      return false;
    }
    backSinceMs ??= steadyMs();
    return steadyMs() - backSinceMs >= goneBackAfterMs;
  }

  /** Views may arrive in another order than they were asked for in: the switch goes back no more than policies do. */
  function hearSwitch(
    { generation, killSwitch: record }: Pulse,
    { askedMs, goneBack = false }: { readonly askedMs: number | undefined; readonly goneBack?: boolean },
  ): void {
    if (switchHeard !== undefined && generation < switchHeard.generation && !goneBack) return;
    const seenMs = goneBack ? undefined : switchHeard?.askedMs;
    killSwitch.hear(record, seenMs === undefined ? undefined : steadyMs() - seenMs);
    switchHeard = { generation, askedMs };
  }

  async function readPulse(): Promise<{ readonly pulse: Pulse; readonly askedMs: number }> {
    const askedMs = steadyMs();
    return { pulse: await withDeadline(store.readPulse(), lookWithinMs, silence), askedMs };
  }

  async function lookOnce(byPush: boolean): Promise<void> {
    const { pulse, askedMs } = await readPulse();
    if (closed) return;
    const goneBack = hasGoneBack(pulse.generation);
    hearSwitch(pulse, { askedMs, goneBack });
    newest = pulse.generation;
    const current = taken?.stored.generation ?? -1;
    const isNew = pulse.generation > current && pulse.generation !== refused?.generation;
    const isOld = goneBack && pulse.generation !== refused?.generation;
    const isDue = steadyMs() - readAtMs >= rereadMs && (pulse.generation >= current || goneBack);
    if (isNew && !byPush && taken !== undefined) figures.countFoundByLooking();
    if (isNew || isOld || isDue) await readWhole(goneBack);
    reached();
  }

  /** The switch alone, which does not wait for a whole that is long in coming, or long to be made ready. That the store is away is told by who reads it. */
  async function glance(): Promise<void> {
    if (glancing) return;
    glancing = true;
    try {
      const { pulse, askedMs } = await readPulse();
      if (!closed) hearSwitch(pulse, { askedMs });
    } catch {
      return;
    } finally {
      glancing = false;
    }
  }

  async function readWhole(goneBack: boolean): Promise<void> {
    reading = true;
    try {
      await readAndTakeUp(goneBack);
    } finally {
      reading = false;
    }
  }

  async function readAndTakeUp(goneBack: boolean): Promise<void> {
    const askedMs = steadyMs();
    const since = resetsUntil;
    const { stored, changedMs, resets } = await withDeadline(
      store.read((view) => readWithTime(view, since)),
      readWithinMs,
      silence,
    );
    if (closed) return;
    readAtMs = steadyMs();
    newest = stored.generation;
    const before = taken?.stored.generation;
    if (before !== undefined && stored.generation < before && !goneBack) return;
    hearSwitch(stored, { askedMs, goneBack });
    if (before !== undefined && stored.generation < before)
      log.warn(
        { store: store.where, from: before, to: stored.generation },
        "the policy store has an older generation than this node, as after a restored backup; what it has is taken up",
      );
    useTokens(stored.tokens);
    await takeUp(stored, "store");
    // Also where the policies are refused: each reset is heard of once.
    resetsUntil = stored.generation;
    if (resets.length > 0) onResets(resets);
    if (before !== undefined && before !== stored.generation)
      figures.countTakenUp(changedMs === undefined ? undefined : Math.max(0, nowMs() - changedMs) / 1_000);
  }

  async function takeUp(stored: StoredGeneration, source: FollowerStatus["source"]): Promise<void> {
    const { generation } = stored;
    const before = taken;
    try {
      const digest = await use(stored, before?.digest);
      if (closed) return;
      const isNew = before?.stored.generation !== generation || before.source !== source || before.digest !== digest;
      taken = { stored, source, digest, atMs: isNew ? nowMs() : before.atMs };
      if (source === "store") refused = undefined;
      backSinceMs = undefined;
      if (!isNew) return;
      log.info(
        { store: store.where, generation, policies: countPolicies(limiter.snapshot.policySet), source },
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

  /**
   * Has the policies decide, where they differ from those in force. They are composed and compiled a few at a time, between
   * decisions, and then taken up at once.
   */
  async function use(stored: StoredGeneration, digestBefore: string | undefined): Promise<string> {
    const digest = digestOf(stored.rows);
    if (digest === digestBefore && refused === undefined) return digest;
    const ahead = { files: policies.files, composed: await prepare(stored) };
    if (closed) return digest;
    // Composed anew whenever files change, because it may refer to what is in them.
    policies.useStored((files) => {
      const composed =
        files === ahead.files ? ahead.composed : composePolicySet(stored.rows, nowMs(), { reader, files });
      tellProblems(composed.problems);
      return composed.policySet;
    });
    return digest;
  }

  async function prepare(stored: StoredGeneration): Promise<ComposedPolicies> {
    const composed = await composeInTurns(stored.rows, nowMs(), { reader, files: policies.files });
    const turns = createTurns();
    for (const policy of composed.policySet.policies) {
      preparePolicy(policy);
      await turns.pass();
    }
    return composed;
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
      again = { byPush: byPush || again?.byPush === true };
      if (reading) void glance();
      return running;
    }
    running = (async () => {
      for (let next: typeof again = { byPush }; next !== undefined && !closed; next = again) {
        again = undefined;
        await lookOnce(next.byPush).catch((error: unknown) => {
          if (!closed) missed(error);
        });
      }
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
      // A look that takes long is not waited for, because the next one may hear of the kill switch.
      if (!closed) void run(false);
    }
  }

  return {
    async start(kept): Promise<void> {
      await run(false);
      if (taken === undefined && kept !== undefined) {
        hearSwitch(kept, { askedMs: undefined });
        useTokens(kept.tokens);
        await takeUp(kept, "snapshot");
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
      // What is under way is not waited for: the store may not answer, and what comes is not looked at any more.
      closed = true;
      stop.abort();
    },
  };
}

const maxTold = 20;

type View = Parameters<Parameters<PolicyStore["read"]>[0]>[0];

/** One generation, when the change was made that it is, where that can be found, and the resets between `since` and it. */
async function readWithTime(
  view: View,
  since: number | undefined,
): Promise<{
  readonly stored: StoredGeneration;
  readonly changedMs: number | undefined;
  readonly resets: readonly AuditRecord[];
}> {
  const stored = await readStored(view);
  const records = await view.audit({ limit: auditLooked });
  const changedMs = records.find(({ generation }) => generation === stored.generation)?.atMs;
  // A node that starts holds no counters in memory.
  const isNew = since !== undefined && stored.generation > since;
  return { stored, changedMs, resets: isNew ? await readResets(view, since) : [] };
}

const resetsAtOnce = 50;
/** Records looked at. A node that missed more has been without its store for long. */
const mostLooked = 1_000;

async function readResets(view: View, since: number): Promise<readonly AuditRecord[]> {
  const resets: AuditRecord[] = [];
  let after: string | undefined;
  for (let looked = 0; looked < mostLooked; looked += resetsAtOnce) {
    const page = await view.audit({ action: resetAction, outcome: "done", limit: resetsAtOnce, after });
    // Those without a generation were one server's alone.
    resets.push(...page.filter(({ generation }) => generation !== undefined && generation > since));
    const isLast = page.some(({ generation }) => generation !== undefined && generation <= since);
    if (isLast || page.length < resetsAtOnce) break;
    after = page.at(-1)?.id;
  }
  return resets.reverse();
}

function silence(): Error {
  return new PolicyStoreUnavailable("the policy store does not answer");
}
