import type { StoreChange, SubjectLimitRecord, SubjectRecord } from "@sluice/sql";
import { invalidField } from "./control-errors.ts";
import { VersionConflict } from "./version-conflict.ts";

/** As many as a policy file may have of one subject. */
const maxOwnLimits = 64;

/** How far ahead an override may end. */
export const maxOverrideMs: number = 366 * 86_400_000;

/** Throws `version_conflict` where the subject is not at the version that the caller saw; absent: whatever there is. */
export function demandSubjectSeen(
  record: SubjectRecord | undefined,
  dimension: string,
  value: string,
  expected: number | undefined,
): void {
  const version = record?.version ?? 0;
  if (expected === undefined || expected === version) return;
  throw new VersionConflict(`${dimension} ${value}`, expected, version);
}

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

/** Sets a custom limit or an override, and answers the one before. */
export async function putOwnLimit(
  change: StoreChange,
  record: SubjectLimitRecord,
  nowMs: number,
): Promise<SubjectLimitRecord | undefined> {
  const { dimension, value, policy, limit } = record;
  const known = await change.subjectLimits(dimension, value);
  const before = findOwnLimit(known, policy, limit, kindOf(record));
  const others = known.filter((one) => one !== before && !isOver(one, nowMs));
  if (others.length >= maxOwnLimits)
    throw invalidField(["limits"], `of ${dimension} ${value} are ${others.length} already; there can be no more`);
  await putTier(change, dimension, value, (await change.subject(dimension, value))?.tier, nowMs, true);
  await change.putSubjectLimit(record);
  return before;
}
