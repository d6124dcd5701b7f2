import type { PolicyStore } from "@sluice/sql";
import { tallyKeptMinutes } from "../rollouts/read-tallies.ts";

export interface Swept {
  readonly audit: number;
  readonly nodes: number;
  readonly tallies: number;
  readonly overrides: number;
}

const minuteMs = 60_000;
const dayMs = 24 * 60 * minuteMs;
/** Nodes that were not heard of for so long are gone. */
const nodeKeptMs = dayMs;
/** Nodes end overrides by their own clocks: what ended is kept until every clock agrees that it did. */
const overrideKeptMs = 60 * minuteMs;
/** Entries that are thrown away in one statement. */
const auditAtOnce = 1_000;

/**
 * Throws away what nobody needs any more: old audit, nodes that are gone, figures of rollouts, overrides that have ended. The
 * end of an override is not audited: it was told in the entry of its beginning.
 */
export async function sweepStore(store: PolicyStore, nowMs: number, auditKeptMs: number): Promise<Swept> {
  const audit = await sweepAudit(store, nowMs - auditKeptMs);
  const { nodes, tallies } = await store.note(async (note) => ({
    nodes: await note.deleteNodesSeenBefore(nowMs - nodeKeptMs),
    tallies: await note.deleteTalliesBefore(Math.floor(nowMs / minuteMs) - tallyKeptMinutes),
  }));
  const endedBeforeMs = nowMs - overrideKeptMs;
  const ended = await store.read(async (view) =>
    (await view.subjectLimits()).some(({ untilMs }) => untilMs !== undefined && untilMs < endedBeforeMs),
  );
  // What has ended nobody decides by, so that it goes is no new generation.
  const overrides = ended ? await store.change((change) => change.deleteEndedSubjectLimits(endedBeforeMs)) : 0;
  return { audit, nodes, tallies, overrides };
}

/** In parts: however many there are, decisions of this process and changes of others go on between them. */
async function sweepAudit(store: PolicyStore, beforeMs: number): Promise<number> {
  for (let swept = 0; ; ) {
    const some = await store.note((note) => note.deleteAuditBefore(beforeMs, auditAtOnce));
    swept += some;
    if (some < auditAtOnce) return swept;
  }
}
