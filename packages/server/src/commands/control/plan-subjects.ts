import { isDeepStrictEqual } from "node:util";
import type { SubjectEntry } from "sluice";
import { readPolicyDocument } from "sluice/policy-text";
import { canonicalSubject } from "../../control-plane/documents/canonical-subject.ts";

/** What becomes of subjects, each as `user=u1`. */
export interface PlannedSubjects {
  readonly create: readonly string[];
  readonly change: readonly string[];
  readonly delete: readonly string[];
}

/**
 * What has to be done for the store to hold the subjects that are `wanted`; both lists are as a policy file has them. Those that are
 * stored and not wanted are deleted where all of it is to be replaced, and stay otherwise.
 */
export function planSubjects(
  wanted: readonly unknown[],
  stored: readonly unknown[],
  replace: boolean,
  nowMs: number,
): PlannedSubjects {
  const [after, before] = [readSubjects(wanted, nowMs), readSubjects(stored, nowMs)];
  const names = [...after.keys()];
  return {
    create: names.filter((name) => !before.has(name)),
    change: names.filter((name) => before.has(name) && !isDeepStrictEqual(before.get(name), after.get(name))),
    delete: replace ? [...before.keys()].filter((name) => !after.has(name)) : [],
  };
}

/** By name, as far as it decides anything: overrides that have ended are left out, and the order of limits means nothing. */
function readSubjects(written: readonly unknown[], nowMs: number): ReadonlyMap<string, unknown> {
  const { subjects } = readPolicyDocument({ policies: [], subjects: written });
  return new Map(
    subjects.map(({ value: { dimension, value, tier, limits } }) => {
      const lasting = limits.filter(({ untilMs }) => untilMs === undefined || untilMs > nowMs).map(comparable);
      return [`${dimension}=${canonicalSubject(dimension, value)}`, { tier, limits: lasting.sort() }];
    }),
  );
}

function comparable({ policy, limit, windows, untilMs }: SubjectEntry["limits"][number]): string {
  return JSON.stringify([policy, limit ?? "", untilMs ?? 0, windows]);
}

const mostNamed = 20;

export function renderSubjectPlan(plan: PlannedSubjects): string {
  const parts = (["create", "change", "delete"] as const).map((action) => {
    const names = plan[action];
    const more = names.length > mostNamed ? ` and ${names.length - mostNamed} more` : "";
    return `${names.length} to ${action}${names.length === 0 ? "" : ` (${names.slice(0, mostNamed).join(", ")}${more})`}`;
  });
  return `subjects: ${parts.join(", ")}`;
}
