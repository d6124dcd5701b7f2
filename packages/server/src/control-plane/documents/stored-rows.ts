import type {
  BlockRecord,
  DisabledRecord,
  PolicyRecord,
  RolloutRecord,
  RolloutState,
  StoreView,
  SubjectLimitRecord,
  SubjectRecord,
  VersionRecord,
} from "@sluice/sql";

/** The rows that the policies of one generation are made of. */
export interface StoredRows {
  /** Without deleted ones. */
  readonly policies: readonly PolicyRecord[];
  /** Rollouts that have not ended, each with the version being rolled out. */
  readonly underway: readonly { readonly rollout: RolloutRecord; readonly version: VersionRecord }[];
  readonly subjects: readonly SubjectRecord[];
  /** Includes those that have ended. */
  readonly subjectLimits: readonly SubjectLimitRecord[];
  /** Both include those that have ended. Absent: written by a version of Sluice that has none. */
  readonly disabled?: readonly DisabledRecord[];
  readonly blocks?: readonly BlockRecord[];
}

/** The states of a rollout that has not ended. */
export const underwayStates: readonly RolloutState[] = ["waiting", "observing", "running", "paused"];

/** Whether both versions are in force: a waiting rollout has changed nothing yet. */
export function isOnTrial({ state }: RolloutRecord): boolean {
  return state === "observing" || state === "running" || state === "paused";
}

/** The percentage of subjects under the new version now. */
export function currentPercent({ state, step, steps }: RolloutRecord): number {
  if (state === "done") return 100;
  if (state !== "running" && state !== "paused") return 0;
  return steps[step]?.percent ?? 0;
}

/** Reads them from one view, so that they are consistent. */
export async function readStoredRows(view: StoreView): Promise<StoredRows> {
  const policies = await view.policies();
  const rollouts = await view.rollouts({ states: underwayStates });
  const underway = [];
  for (const rollout of rollouts) {
    const version = await view.version(rollout.policy, rollout.toVersion);
    if (version !== undefined) underway.push({ rollout, version });
  }
  const subjects = await view.subjects();
  const subjectLimits = await view.subjectLimits();
  const disabled = await view.disabled();
  const blocks = await view.blocks();
  return { policies, underway, subjects, subjectLimits, disabled, blocks };
}
