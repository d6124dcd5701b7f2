import type { PolicyRecord, RolloutRecord, StoreChange } from "@sluice/sql";
import { documentFromText, ownerOf } from "./policy-documents.ts";

/** Who moves a rollout, and why, for the versions that come of it. */
export interface MovedBy {
  readonly author: string;
  readonly why: string;
  readonly atMs: number;
}

/**
 * Keeps a rollout as it is now. Where it has ended, so that one version of the policy is in force for everybody: the new one if
 * it is done, unless it was only looked at; else the old one, and if there was none the policy is deleted.
 */
export async function putRollout(change: StoreChange, rollout: RolloutRecord, by: MovedBy): Promise<void> {
  await change.putRollout(rollout);
  const { state, shadow, policy, fromVersion, toVersion } = rollout;
  const taken = state === "done" && !shadow;
  const leftAside = state === "rolled_back" || state === "cancelled" || (state === "done" && shadow);
  const current = await change.policy(policy);
  if (current === undefined || current.deleted) return;
  if (leftAside && fromVersion === 0 && current.version === toVersion) {
    await markDeleted(change, current, { ...by, why: by.why || rollout.reason });
    return;
  }
  if (!taken || fromVersion === 0) return;
  const next = await change.version(policy, toVersion);
  if (next === undefined) return;
  await change.putPolicy({
    ...current,
    version: toVersion,
    document: next.document,
    owner: ownerOf(documentFromText(next.document)),
    changedMs: by.atMs,
  });
}

/** Makes the version of a policy that says it is deleted. */
export async function markDeleted(change: StoreChange, current: PolicyRecord, by: MovedBy): Promise<void> {
  const { author, why, atMs } = by;
  const version = await nextVersion(change, current.id);
  await change.addVersion({
    policy: current.id,
    version,
    document: "",
    deleted: true,
    author,
    atMs,
    why,
    revertOf: undefined,
  });
  await change.putPolicy({ ...current, version, document: "", ruleKey: undefined, deleted: true, changedMs: atMs });
}

/** Versions count on where some of them never came to be the current one. */
export async function nextVersion(change: StoreChange, policy: string): Promise<number> {
  const [newest] = await change.versions(policy, { limit: 1 });
  return (newest?.version ?? 0) + 1;
}
