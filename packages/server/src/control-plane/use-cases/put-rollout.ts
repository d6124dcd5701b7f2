import type { PolicyRecord, RolloutRecord, StoreChange, VersionRecord } from "@sluice/sql";
import { documentFromText, findOwner, hasSameScope } from "../documents/policy-documents.ts";

/** The actor that moves a rollout, and the reason, for the resulting versions. */
export interface MovedBy {
  readonly author: string;
  readonly why: string;
  readonly atMs: number;
}

/**
 * Stores the current state of a rollout. If it has ended, one version of the policy applies to all subjects: the new
 * one if it is done, unless it was only evaluated; otherwise the old one, and if there was none the policy is deleted.
 */
export async function putRollout(change: StoreChange, rollout: RolloutRecord, by: MovedBy): Promise<void> {
  await change.putRollout(rollout);
  const { state, shadow, policy, fromVersion, toVersion } = rollout;
  const isAdopted = state === "done" && !shadow;
  const isShadowOnly = state === "rolled_back" || state === "cancelled" || (state === "done" && shadow);
  const current = await change.policy(policy);
  if (current === undefined || current.deleted) return;
  if (isShadowOnly && fromVersion === 0 && current.version === toVersion) {
    const newest = await newestVersion(change, policy);
    const { record, added } = deletedPolicy(current, newest, { ...by, why: by.why || rollout.reason });
    await change.addVersion(added);
    await change.putPolicy(record);
    return;
  }
  if (!isAdopted || fromVersion === 0) return;
  const next = await change.version(policy, toVersion);
  if (next === undefined) return;
  const before = documentFromText(current.document);
  const after = documentFromText(next.document);
  await change.putPolicy({
    ...current,
    version: toVersion,
    document: next.document,
    owner: findOwner(after),
    ruleKey: hasSameScope(before, after) ? current.ruleKey : undefined,
    changedMs: by.atMs,
  });
}

/** A deleted policy, and the version that records the deletion. */
export function deletedPolicy(
  current: PolicyRecord,
  newest: number,
  { author, why, atMs }: MovedBy,
): { readonly record: PolicyRecord; readonly added: VersionRecord } {
  const version = newest + 1;
  return {
    record: { ...current, version, document: "", ruleKey: undefined, deleted: true, changedMs: atMs },
    added: { policy: current.id, version, document: "", deleted: true, author, atMs, why, revertOf: undefined },
  };
}

/** Some versions never became the current one. 0: there is none. */
export async function newestVersion(change: StoreChange, policy: string): Promise<number> {
  const [newest] = await change.versions(policy, { limit: 1 });
  return newest?.version ?? 0;
}
