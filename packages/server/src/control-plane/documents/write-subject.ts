import { isDeepStrictEqual } from "node:util";
import type { StoreChange, SubjectLimitRecord } from "@sluice/sql";
import { invalidField } from "../control-errors.ts";
import { readWindows } from "./read-documents.ts";

/** As many as a policy file may have of one subject. */
const maxOwnLimits = 64;

/** How far ahead an override may end. */
export const maxOverrideMs: number = 366 * 86_400_000;

/**
 * Sets the tier of a subject; with `touch` also where it has that already, because something else of it changed. A subject's
 * version is the generation that changed it: it counts up, and begins never again, not even after the subject was forgotten.
 */
export async function putTier(
  change: StoreChange,
  dimension: string,
  value: string,
  tier: string | undefined,
  nowMs: number,
  touch = false,
): Promise<{ readonly before: string | undefined; readonly after: string | undefined }> {
  const before = (await change.subject(dimension, value))?.tier;
  if (before !== tier || touch) {
    const version = await change.nextGeneration();
    await change.putSubject({ dimension, value, tier, version, changedMs: nowMs });
  }
  return { before, after: tier };
}

export type OwnLimitKind = "custom" | "override";

export function kindOf({ untilMs }: Pick<SubjectLimitRecord, "untilMs">): OwnLimitKind {
  return untilMs === undefined ? "custom" : "override";
}

export function isOver({ untilMs }: Pick<SubjectLimitRecord, "untilMs">, nowMs: number): boolean {
  return untilMs !== undefined && untilMs <= nowMs;
}

export function findOwnLimit(
  limits: readonly SubjectLimitRecord[],
  policy: string,
  limit: string,
  kind: OwnLimitKind,
): SubjectLimitRecord | undefined {
  return limits.find((one) => one.policy === policy && one.limit === limit && kindOf(one) === kind);
}

/** Sets a custom limit or an override, unless it is so already, and answers the one before; an override that has ended is none. */
export async function putOwnLimit(
  change: StoreChange,
  record: SubjectLimitRecord,
  nowMs: number,
): Promise<{ readonly before: SubjectLimitRecord | undefined; readonly changed: boolean }> {
  const { dimension, value, policy, limit } = record;
  const known = (await change.subjectLimits(dimension, value)).filter((one) => !isOver(one, nowMs));
  const before = findOwnLimit(known, policy, limit, kindOf(record));
  if (before !== undefined && limitsTheSame(before, record)) return { before, changed: false };
  const others = known.filter((one) => one !== before);
  if (others.length >= maxOwnLimits)
    throw invalidField(["limits"], `of ${dimension} ${value} are ${others.length} already; there can be no more`);
  await putTier(change, dimension, value, (await change.subject(dimension, value))?.tier, nowMs, true);
  await change.putSubjectLimit(record);
  return { before, changed: true };
}

/** Whether they limit to the same, in whichever words and for whatever reason. */
export function limitsTheSame(one: SubjectLimitRecord, other: SubjectLimitRecord): boolean {
  if (one.untilMs !== other.untilMs) return false;
  if (one.windows === other.windows) return true;
  const [ours, theirs] = [one, other].map(({ windows }) => readWindows(JSON.parse(windows)).windows);
  return isDeepStrictEqual(ours, theirs);
}
