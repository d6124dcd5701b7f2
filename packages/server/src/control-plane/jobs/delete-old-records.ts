import type { PolicyStore } from "@sluice/sql";
import { tallyKeptMinutes } from "../rollouts/read-tallies.ts";
import { deleteOldUsage, type UsageKept } from "../usage/usage-upkeep.ts";
import { consolePrefix, isConsoleToken } from "../use-cases/control-tokens.ts";

export interface DeletedRecords {
  readonly audit: number;
  readonly nodes: number;
  readonly tallies: number;
  readonly overrides: number;
  /** Tokens of sessions of the console. */
  readonly tokens: number;
  /** Periods of usage. */
  readonly usage: number;
  readonly denials: number;
}

/** How long records are kept. */
export interface Kept {
  readonly auditMs: number;
  readonly usage: UsageKept;
  readonly denialsMs: number;
}

const minuteMs = 60_000;
const dayMs = 24 * 60 * minuteMs;
/** Nodes that have not reported for this long are gone. */
const nodeKeptMs = dayMs;
/** Nodes end overrides by their own clocks, so ended overrides are stored until every clock agrees. */
const overrideKeptMs = 60 * minuteMs;
/** Tokens of the console's sessions stay in lists for a day after their end. Other tokens stay: people made them. */
const tokenKeptMs = dayMs;
/** How many entries are deleted in one statement. */
const auditAtOnce = 1_000;
const denialsAtOnce = 1_000;
/** However many nodes record denials, and for however long: a million records are about a gigabyte. */
const maxDenials = 1_000_000;

/**
 * Deletes what is no longer needed: old audit records, usage and denials, nodes that are gone, metrics of rollouts, overrides,
 * blocks, disablings and sessions of the console that have ended. The end of an override is not audited: the entry of its beginning names it.
 */
export async function deleteOldRecords(store: PolicyStore, nowMs: number, kept: Kept): Promise<DeletedRecords> {
  const audit = await deleteOldAudit(store, nowMs - kept.auditMs);
  const { nodes, tallies } = await store.note(async (note) => ({
    nodes: await note.deleteNodesSeenBefore(nowMs - nodeKeptMs),
    tallies: await note.deleteTalliesBefore(Math.floor(nowMs / minuteMs) - tallyKeptMinutes),
  }));
  const endedBeforeMs = nowMs - overrideKeptMs;
  const ended = await store.read(async (view) =>
    (await view.subjectLimits()).some(({ untilMs }) => untilMs !== undefined && untilMs < endedBeforeMs),
  );
  // Ended overrides do not affect decisions, so deleting them is not a new generation.
  const overrides = ended ? await store.change((change) => change.deleteEndedSubjectLimits(endedBeforeMs)) : 0;
  const exceptions = await store.read(async (view) =>
    [...(await view.disabled()), ...(await view.blocks())].some(({ untilMs }) => untilMs < endedBeforeMs),
  );
  if (exceptions) await store.change((change) => change.deleteEndedExceptions(endedBeforeMs));
  const tokens = await deleteEndedSessions(store, nowMs - tokenKeptMs);
  const usage = await deleteOldUsage(store, nowMs, kept.usage);
  const denials = await deleteOldDenials(store, nowMs - kept.denialsMs);
  return { audit, nodes, tallies, overrides, tokens, usage, denials };
}

/** A token that has ended identifies no caller, so deleting it is not a new generation. */
async function deleteEndedSessions(store: PolicyStore, beforeMs: number): Promise<number> {
  const hasEnded = (atMs: number | undefined): boolean => atMs !== undefined && atMs < beforeMs;
  const found = await store.read(async (view) =>
    (await view.tokens()).some(
      ({ name, expiresMs, revokedMs }) => isConsoleToken(name) && (hasEnded(expiresMs) || hasEnded(revokedMs)),
    ),
  );
  return found ? store.change((change) => change.deleteEndedTokens(consolePrefix, beforeMs)) : 0;
}

async function deleteOldDenials(store: PolicyStore, beforeMs: number): Promise<number> {
  for (let deleted = 0; ; ) {
    const some = await store.note((note) => note.deleteOldDenials(beforeMs, maxDenials, denialsAtOnce));
    deleted += some;
    if (some === 0) return deleted;
  }
}

/** In parts, so that decisions of this process and changes of others continue in between. */
async function deleteOldAudit(store: PolicyStore, beforeMs: number): Promise<number> {
  for (let deleted = 0; ; ) {
    const some = await store.note((note) => note.deleteAuditBefore(beforeMs, auditAtOnce));
    deleted += some;
    if (some < auditAtOnce) return deleted;
  }
}
