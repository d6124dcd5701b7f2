import { isDeepStrictEqual } from "node:util";
import type { StoreChange, SubjectLimitRecord } from "@sluice/sql";
import { invalidField } from "../control-errors.ts";
import { readWindows } from "./read-documents.ts";

/** The limit of a policy file for one subject. */
const maxOwnLimits = 64;

/**
 * Sets the tier of a subject; with `touch` even if the tier is the same, because something else about the subject
 * changed. A subject's version is the generation that changed it, so it always counts up, even after the subject was
 * deleted.
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

export function findLimitKind({ untilMs }: Pick<SubjectLimitRecord, "untilMs">): OwnLimitKind {
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
  return limits.find((one) => one.policy === policy && one.limit === limit && findLimitKind(one) === kind);
}

/**
 * Sets a custom limit or an override, unless it is unchanged, and returns the previous one; an override that has ended
 * does not count.
 */
export async function putOwnLimit(
  change: StoreChange,
  record: SubjectLimitRecord,
  nowMs: number,
): Promise<{ readonly before: SubjectLimitRecord | undefined; readonly changed: boolean }> {
  const { dimension, value, policy, limit } = record;
  const known = (await change.subjectLimits(dimension, value)).filter((one) => !isOver(one, nowMs));
  const before = findOwnLimit(known, policy, limit, findLimitKind(record));
  if (before !== undefined && isSameLimit(before, record)) return { before, changed: false };
  const others = known.filter((one) => one !== before);
  if (others.length >= maxOwnLimits)
    throw invalidField(["limits"], `of ${dimension} ${value} are ${others.length} already, which is the maximum`);
  await putTier(change, dimension, value, (await change.subject(dimension, value))?.tier, nowMs, true);
  await change.putSubjectLimit(record);
  return { before, changed: true };
}

/** Whether they have the same windows and end, regardless of wording and reason. */
export function isSameLimit(one: SubjectLimitRecord, other: SubjectLimitRecord): boolean {
  if (one.untilMs !== other.untilMs) return false;
  if (one.windows === other.windows) return true;
  const [ours, theirs] = [one, other].map(({ windows }) => readWindows(JSON.parse(windows)).windows);
  return isDeepStrictEqual(ours, theirs);
}
