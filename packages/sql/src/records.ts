/**
 * What the policy store holds, as plain data. Times are epoch milliseconds. Documents are texts: what a policy may say is
 * for those who write and read it to know.
 */

/** A policy as it is now. */
export interface PolicyRecord {
  readonly id: string;
  /** Counts up from 1 with every change, and goes on after a deletion. */
  readonly version: number;
  /** JSON, in the format of a policy file's entry. Empty where it is deleted. */
  readonly document: string;
  /** The team that may change it. */
  readonly owner: string | undefined;
  /** Scope, value, endpoint and tier of a policy that was written as a rule; no two policies have the same. */
  readonly ruleKey: string | undefined;
  readonly deleted: boolean;
  readonly changedMs: number;
}

/** One version of a policy, for ever as it was written. */
export interface VersionRecord {
  readonly policy: string;
  readonly version: number;
  readonly document: string;
  readonly deleted: boolean;
  readonly author: string;
  readonly atMs: number;
  readonly why: string;
  /** The version that it makes anew, where it was a revert. */
  readonly revertOf: number | undefined;
}

export const rolloutStates = ["waiting", "observing", "running", "paused", "done", "rolled_back", "cancelled"] as const;

/**
 * waiting: for its beginning. observing: how subjects fare under the old version, before anybody sees the new one. running: by
 * steps. paused: stays where it is. The last three are ends.
 */
export type RolloutState = (typeof rolloutStates)[number];

/** A new version of a policy on its way to every subject. */
export interface RolloutRecord {
  readonly id: string;
  readonly policy: string;
  /** 0: the policy is new, and where the new version is not in force nothing is. */
  readonly fromVersion: number;
  readonly toVersion: number;
  readonly state: RolloutState;
  /** Only looked at: the old version decides, for everybody, and what the new one would say is counted. */
  readonly shadow: boolean;
  /** The dimension by whose value a subject is in or out. */
  readonly by: string;
  readonly steps: readonly RolloutStep[];
  /** Which step is in force; −1: none yet. */
  readonly step: number;
  /** When the step that is in force began, or the state without one. */
  readonly stepSinceMs: number;
  /** Not before then. */
  readonly startsMs: number;
  readonly observeForMs: number;
  readonly expectMoreDenials: boolean;
  /** Looks in a row that were beyond what is usual. */
  readonly strikes: number;
  /** The last minute that was looked at. */
  readonly lookedAtMinute: number;
  /** JSON: the figures of the latest look. */
  readonly figures: string;
  /** Why it is in this state, for people. */
  readonly reason: string;
  readonly author: string;
  readonly createdMs: number;
  readonly changedMs: number;
}

export interface RolloutStep {
  readonly percent: number;
  /** How long before the next step comes by itself. 0: by hand. */
  readonly holdMs: number;
}

/** A tier of a subject. */
export interface SubjectRecord {
  readonly dimension: string;
  readonly value: string;
  /** Undefined: none of its own. */
  readonly tier: string | undefined;
  /** Counts up with every change of the tier or of a limit. */
  readonly version: number;
  readonly changedMs: number;
}

/** A custom limit of a subject, or with an end an override. */
export interface SubjectLimitRecord {
  readonly dimension: string;
  readonly value: string;
  readonly policy: string;
  /** Name of the limit; "" for all of the policy's that are by this dimension. */
  readonly limit: string;
  /** JSON, as in a policy file: `["100/s burst 200"]`. */
  readonly windows: string;
  /** Undefined: for good. */
  readonly untilMs: number | undefined;
  readonly reason: string;
  readonly author: string;
  readonly atMs: number;
}

export interface KillSwitchRecord {
  readonly mode: "open" | "closed";
  readonly sinceMs: number;
  readonly untilMs: number;
  readonly reason: string;
  readonly author: string;
}

/** A token as it is kept: by its digest. */
export interface TokenRecord {
  readonly id: string;
  readonly name: string;
  readonly role: string;
  /** The team whose policies an editor may change. */
  readonly team: string | undefined;
  /** SHA-256 in lower-case hexadecimal digits. */
  readonly sha256: string;
  readonly createdMs: number;
  readonly createdBy: string;
  /** Undefined: never. */
  readonly expiresMs: number | undefined;
  readonly revokedMs: number | undefined;
  readonly lastUsedMs: number | undefined;
}

export interface AuditRecord {
  /** Sorts by time. */
  readonly id: string;
  readonly atMs: number;
  /** Name of the token, `anonymous`, or `sluice` for what was done by itself. */
  readonly actor: string;
  readonly role: string;
  /** The address that it came from; empty for what was done by itself. */
  readonly from: string;
  /** `policy.put`, `kill_switch.on`, … */
  readonly action: string;
  /** What it was done to: `policy`, `subject`, `token`, … and which. */
  readonly kind: string;
  readonly target: string;
  readonly outcome: "done" | "refused";
  /** Why it was wanted, or refused. */
  readonly why: string;
  /** JSON; undefined where there was nothing before or is nothing now. */
  readonly before: string | undefined;
  readonly after: string | undefined;
  /** The generation that it made; undefined where it made none. */
  readonly generation: number | undefined;
}

/** A server process, as it told of itself. */
export interface NodeRecord {
  readonly id: string;
  readonly name: string;
  readonly version: string;
  readonly startedMs: number;
  readonly seenMs: number;
  /** The generation that it decides by. */
  readonly generation: number;
  readonly appliedMs: number;
  /** JSON: what else it tells of itself. */
  readonly details: string;
}

/** What one node decided in one minute for those subjects that join a rollout at one step. */
export interface TallyRecord {
  readonly rollout: string;
  readonly node: string;
  /** Minutes since 1970. */
  readonly minute: number;
  /** The step at which these subjects join. */
  readonly step: number;
  /** Which version decided: the old one, the new one, or the new one in shadow. */
  readonly side: "old" | "new" | "shadow";
  readonly decided: number;
  readonly denied: number;
}
