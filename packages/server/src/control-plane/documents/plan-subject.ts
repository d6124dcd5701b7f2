import { maxOverrideMs } from "@sluice/protocol/admin";
import type { StoreView, SubjectLimitRecord } from "@sluice/sql";
import type { Problem } from "sluice";
import { subjectTarget } from "../audit/audit-entry.ts";
import { invalidField } from "../control-errors.ts";
import type { CountedSubjects } from "../control-plane.ts";
import { byPrecedence } from "./by-precedence.ts";
import { canonicalSubject } from "./canonical-subject.ts";
import type { ImportedSubject } from "./read-import.ts";
import { limitsBySubject } from "./render-configuration.ts";
import { findLimitKind, findOwnLimit, isSameLimit } from "./write-subject.ts";

export type SubjectName = CountedSubjects["first"][number];

/** What a subject has, as far as it decides anything. */
export interface OwnConfiguration {
  readonly tier: string | undefined;
  readonly limits: readonly {
    readonly policy: string;
    readonly limit: string;
    readonly windows: unknown;
    readonly until_ms: number | undefined;
  }[];
}

/** A subject in the store. */
export interface StoredSubject extends SubjectName {
  readonly own: OwnConfiguration;
  readonly limits: readonly SubjectLimitRecord[];
}

export interface PlanSubjectSettings {
  readonly why: string;
  readonly author: string;
  readonly nowMs: number;
  readonly ipv6PrefixBits: number | undefined;
}

/** What an import makes of a subject. */
export interface PlannedSubject extends SubjectName {
  readonly target: string;
  readonly action: "create" | "change" | "unchanged";
  readonly tier: string | undefined;
  readonly limits: readonly SubjectLimitRecord[];
  /** Whether there is a record of it. */
  readonly isStored: boolean;
  /** Whether something that it has is not there afterwards, or is another. */
  readonly loses: boolean;
  readonly before: OwnConfiguration;
  readonly after: OwnConfiguration;
}

/** How many subjects a report names that were created, and changed, and deleted. */
const maxNamed = 100;

export function countSubjects(names: readonly SubjectName[]): CountedSubjects {
  return {
    count: names.length,
    first: names.slice(0, maxNamed).map(({ dimension, value }) => ({ dimension, value })),
  };
}

/** Throws `invalid_request` where it cannot be stored. `index` is its place among the subjects of the import. */
export function planSubject(
  subject: ImportedSubject,
  index: number,
  stored: ReadonlyMap<string, StoredSubject>,
  { why, author, nowMs, ipv6PrefixBits }: PlanSubjectSettings,
): PlannedSubject {
  const { dimension, tier } = subject;
  const value = canonicalSubject(dimension, subject.value, ipv6PrefixBits);
  const target = subjectTarget(dimension, value);
  const place = ["subjects", index];
  const { own: before = nothingOwn, limits: there = [] } = stored.get(target) ?? {};
  const written = subject.limits.flatMap(({ policy, limit, windows, untilMs }): readonly SubjectLimitRecord[] => {
    if (untilMs !== undefined && untilMs > nowMs + maxOverrideMs)
      throw invalidField([...place, "limits"], "has an override that does not end within a year from now");
    if (untilMs !== undefined && untilMs <= nowMs) return [];
    return [{ dimension, value, policy, limit, windows, untilMs, reason: why, author, atMs: nowMs }];
  });
  demandNoDoubles(written, place);
  // Unchanged limits keep their wording, author and reason.
  const limits = written.map((one) => {
    const same = findOwnLimit(there, one.policy, one.limit, findLimitKind(one));
    return same !== undefined && isSameLimit(same, one) ? same : one;
  });
  const after: OwnConfiguration = { tier, limits: limits.toSorted(byPrecedence).map(ownLimit) };
  const isSame = JSON.stringify(before) === JSON.stringify(after);
  return {
    dimension,
    value,
    target,
    action: isSame ? "unchanged" : hasNothing(before) ? "create" : "change",
    tier,
    limits,
    isStored: stored.has(target),
    loses: losesAny(before, after),
    before,
    after,
  };
}

/** Throws `invalid_request` where two entries are of one subject. */
export function demandOnce(target: string, index: number, named: Set<string>): void {
  if (named.has(target))
    throw invalidField(["subjects", index], `is ${target}, which another entry has too; write one entry for both`);
  named.add(target);
}

/** Of two limits for the same, one would be lost silently. */
function demandNoDoubles(limits: readonly SubjectLimitRecord[], place: Problem["path"]): void {
  for (const [index, one] of limits.entries()) {
    const { policy, limit } = one;
    if (findOwnLimit(limits.slice(0, index), policy, limit, findLimitKind(one)) === undefined) continue;
    const what = findLimitKind(one) === "override" ? "two overrides" : "two custom limits";
    throw invalidField(
      [...place, "limits"],
      `has ${what} for ${policy}${limit === "" ? "" : ` / ${limit}`}; write one`,
    );
  }
}

const nothingOwn: OwnConfiguration = { tier: undefined, limits: [] };

/** The same goes for a subject whose overrides have all ended: it is in no file, and affects no decision. */
export function hasNothing({ tier, limits }: OwnConfiguration): boolean {
  return tier === undefined && limits.length === 0;
}

function losesAny(before: OwnConfiguration, after: OwnConfiguration): boolean {
  const left = new Set(after.limits.map((limit) => JSON.stringify(limit)));
  const losesTier = before.tier !== undefined && before.tier !== after.tier;
  return losesTier || before.limits.some((limit) => !left.has(JSON.stringify(limit)));
}

/** What is stored of each subject, by its target. */
export async function readStoredSubjects(view: StoreView, nowMs: number): Promise<ReadonlyMap<string, StoredSubject>> {
  const limitsByTarget = limitsBySubject(await view.subjectLimits(), nowMs);
  const subjects = await view.subjects();
  return new Map(
    subjects.map(({ dimension, value, tier }) => {
      const target = subjectTarget(dimension, value);
      const limits = (limitsByTarget.get(target) ?? []).toSorted(byPrecedence);
      return [target, { dimension, value, limits, own: { tier, limits: limits.map(ownLimit) } }];
    }),
  );
}

function ownLimit({ policy, limit, windows, untilMs }: SubjectLimitRecord): OwnConfiguration["limits"][number] {
  return { policy, limit, windows: JSON.parse(windows), until_ms: untilMs };
}
