import type { BlockRecord, StoreView, SubjectLimitRecord, SubjectRecord } from "@sluice/sql";
import type { SubjectEntry } from "sluice";
import type { SubjectLimit } from "sluice/internal";
import { byPrecedence } from "../documents/by-precedence.ts";
import { canonicalSubject } from "../documents/canonical-subject.ts";
import type { DocumentReader } from "../documents/read-documents.ts";
import { isOver } from "../documents/write-subject.ts";
import type { StoredSubject, SubjectBlockView, SubjectLimitView, SubjectView } from "../subject-control.ts";
import type { ControlContext } from "./control-context.ts";
import { effectiveLimit, limitsBy, readUsage } from "./effective-limits.ts";

/** A subject as stored. */
export interface SubjectState {
  readonly dimension: string;
  readonly value: string;
  readonly version: number;
  readonly tier: string | undefined;
  /** Without overrides that have ended. */
  readonly limits: readonly SubjectLimitRecord[];
  /** Undefined if there is none, or it has ended. */
  readonly block: BlockRecord | undefined;
}

export async function readSubject(
  view: StoreView,
  dimension: string,
  value: string,
  nowMs: number,
): Promise<SubjectState> {
  return subjectFromRecord(view, await view.subject(dimension, value), dimension, value, nowMs);
}

export async function subjectFromRecord(
  view: StoreView,
  record: SubjectRecord | undefined,
  dimension: string,
  value: string,
  nowMs: number,
): Promise<SubjectState> {
  const limits = await view.subjectLimits(dimension, value);
  return {
    dimension,
    value,
    version: record?.version ?? 0,
    tier: record?.tier,
    limits: limits.filter((limit) => !isOver(limit, nowMs)),
    block: (await view.blocks(dimension, value)).find(({ untilMs }) => nowMs < untilMs),
  };
}

export function renderSubject({ limits, block, ...known }: SubjectState): StoredSubject {
  return { ...known, limits: limits.map(limitView), block: block && blockView(block) };
}

export function blockView({ policies, untilMs, reason, author, atMs }: BlockRecord): SubjectBlockView {
  return { policies: policies.length === 0 ? undefined : policies, untilMs, reason, author, atMs };
}

export function limitView({
  policy,
  limit,
  windows,
  untilMs,
  reason,
  author,
  atMs,
}: SubjectLimitRecord): SubjectLimitView {
  return {
    policy,
    limit: limit === "" ? undefined : limit,
    windows: writtenWindows(windows),
    untilMs,
    reason,
    author,
    atMs,
  };
}

/** As they were written. */
function writtenWindows(text: string): readonly string[] {
  const windows = JSON.parse(text) as readonly unknown[];
  return windows.map((window) => (typeof window === "string" ? window : JSON.stringify(window)));
}

/** With every limit that counts by the dimension, and the state of its counters. */
export async function completeView(context: ControlContext, known: SubjectState): Promise<SubjectView> {
  const { dimension, value } = known;
  const nowMs = context.nowMs();
  const entry = entryInForce(context, known);
  const limits = limitsBy(context.limiter.snapshot.policySet, dimension, value, nowMs);
  const usages = await readUsage(context.limiter, limits, dimension, value);
  return {
    ...renderSubject(known),
    effective: limits.map((limit) => {
      const effective = effectiveLimit(limit, dimension, entry, nowMs);
      return { ...effective, usage: usages(limit, effective) };
    }),
  };
}

/** The tier and limits of the subject: from the store, or from a policy file if that wins or the store has none. */
export function entryInForce(context: ControlContext, known: SubjectState): SubjectEntry | undefined {
  const { dimension, value, tier, limits } = known;
  const { reader, precedence, ipv6PrefixBits } = context;
  const inFiles = context
    .files()
    ?.subjects.find(
      (one) => one.dimension === dimension && canonicalSubject(dimension, one.value, ipv6PrefixBits) === value,
    );
  const isEmpty = tier === undefined && limits.length === 0;
  if (inFiles !== undefined && (precedence === "files" || isEmpty)) return inFiles;
  if (isEmpty) return undefined;
  const own = limits.map((limit) => ownLimit(limit, reader));
  const ordered = own.toSorted(byPrecedence);
  return { dimension, value, ...(tier === undefined ? undefined : { tier }), limits: ordered };
}

function ownLimit({ policy, limit, windows, untilMs }: SubjectLimitRecord, reader: DocumentReader): SubjectLimit {
  return {
    policy,
    ...(limit === "" ? undefined : { limit }),
    windows: reader.windows(windows).windows,
    ...(untilMs === undefined ? undefined : { untilMs }),
  };
}
