import type { SubjectLimitRecord } from "@sluice/sql";
import { renderYaml } from "sluice/policy-text";
import { subjectTarget } from "../audit/audit-entry.ts";
import { byPrecedence } from "./by-precedence.ts";
import { documentFromText } from "./policy-documents.ts";
import { defaultPolicyId } from "./read-documents.ts";
import type { StoredRows } from "./stored-rows.ts";
import { isOver } from "./write-subject.ts";

/** Everything stored, as a policy file with a stable order and wording. */
export function renderConfiguration(rows: StoredRows, generation: number, nowMs: number): string {
  const fallback = rows.policies.find(({ id }) => id === defaultPolicyId);
  const policies = rows.policies.filter(({ id }) => id !== defaultPolicyId);
  const limitsByTarget = limitsBySubject(rows.subjectLimits, nowMs);
  const subjects = rows.subjects.flatMap(({ dimension, value, tier }) => {
    const limits = limitsByTarget.get(subjectTarget(dimension, value)) ?? [];
    if (tier === undefined && limits.length === 0) return [];
    return [
      {
        [dimension]: value,
        ...(tier === undefined ? undefined : { tier }),
        ...(limits.length === 0 ? undefined : { limits: limits.toSorted(byPrecedence).map(renderLimit) }),
      },
    ];
  });
  const underway = rows.underway
    .map(
      ({ rollout: { policy, toVersion, id } }) =>
        `# being rolled out: version ${toVersion} of ${policy} (rollout ${id})\n`,
    )
    .toSorted();
  const document = {
    policies: policies.map((record) => documentFromText(record.document)),
    ...(fallback === undefined ? undefined : { default: documentFromText(fallback.document) }),
    ...(subjects.length === 0 ? undefined : { subjects }),
  };
  return `# Sluice's policies, as of generation ${generation}\n${underway.join("")}${renderYaml(document)}`;
}

function renderLimit({ policy, limit, windows, untilMs }: SubjectLimitRecord): unknown {
  return {
    policy,
    ...(limit === "" ? undefined : { limit }),
    windows: JSON.parse(windows) as unknown,
    ...(untilMs === undefined ? undefined : { until: new Date(untilMs).toISOString() }),
  };
}

/** Those that have not ended. */
export function limitsBySubject(
  limits: readonly SubjectLimitRecord[],
  nowMs: number,
): ReadonlyMap<string, readonly SubjectLimitRecord[]> {
  const bySubject = new Map<string, SubjectLimitRecord[]>();
  for (const limit of limits) {
    if (isOver(limit, nowMs)) continue;
    const target = subjectTarget(limit.dimension, limit.value);
    const known = bySubject.get(target);
    if (known === undefined) bySubject.set(target, [limit]);
    else known.push(limit);
  }
  return bySubject;
}
