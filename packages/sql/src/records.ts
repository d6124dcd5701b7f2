/**
 * The contents of the policy store, as plain data. Times are epoch milliseconds. Documents are texts, whose format only
 * their writers and readers know. `tables.ts` says which column holds which field.
 */

/** A policy as it is now. */
export interface PolicyRecord {
  readonly id: string;
  /** Counts up from 1 with every change, and continues after a deletion. */
  readonly version: number;
  /** JSON, in the format of an entry of a policy file. Empty if the policy is deleted. */
  readonly document: string;
  /** The team that may change it. */
  readonly owner: string | undefined;
  /** Scope, value, endpoint and tier of a policy that was written as a rule; no two policies have the same. */
  readonly ruleKey: string | undefined;
  readonly deleted: boolean;
  readonly changedMs: number;
}

/** One version of a policy. It never changes. */
export interface VersionRecord {
  readonly policy: string;
  readonly version: number;
  readonly document: string;
  readonly deleted: boolean;
  readonly author: string;
  readonly atMs: number;
  readonly why: string;
  /** The version that it restores, if it is a revert. */
  readonly revertOf: number | undefined;
}

export const rolloutStates = ["waiting", "observing", "running", "paused", "done", "rolled_back", "cancelled"] as const;

/**
 * waiting: for its start time. observing: measures the old version before any subject gets the new one. running: step by step.
 * paused: stays at its step. The last three are ends.
 */
export type RolloutState = (typeof rolloutStates)[number];

/** A new version of a policy on its way to every subject. */
export interface RolloutRecord {
  readonly id: string;
  readonly policy: string;
  /** 0: the policy is new, and subjects outside of the rollout have no limit from it. */
  readonly fromVersion: number;
  readonly toVersion: number;
  readonly state: RolloutState;
  /** The old version decides for all subjects, and what the new one would have decided is counted. */
  readonly shadow: boolean;
  /** The dimension whose value puts a subject in or out. */
  readonly by: string;
  readonly steps: readonly RolloutStep[];
  /** The current step; −1: none yet. */
  readonly step: number;
  /** When the current step began, or the state if there is no step yet. */
  readonly stepSinceMs: number;
  /** It does not start earlier. */
  readonly startsMs: number;
  readonly observeForMs: number;
  readonly expectMoreDenials: boolean;
  /** How many evaluations in a row found more denials than usual. */
  readonly strikes: number;
  /** The last minute that was evaluated. */
  readonly lookedAtMinute: number;
  /** JSON: the metrics of the latest evaluation. */
  readonly figures: string;
  /** Why it is in this state, for people. */
  readonly reason: string;
  readonly author: string;
  readonly createdMs: number;
  readonly changedMs: number;
}

export interface RolloutStep {
  readonly percent: number;
  /** How long until the next step begins automatically. 0: an operator begins it. */
  readonly holdMs: number;
}

/** A subject and its tier. */
export interface SubjectRecord {
  readonly dimension: string;
  readonly value: string;
  /** Undefined: none is set. */
  readonly tier: string | undefined;
  /** Counts up with every change of the tier or of a limit. */
  readonly version: number;
  readonly changedMs: number;
}

/** A custom limit of a subject, or, if it ends, an override. */
export interface SubjectLimitRecord {
  readonly dimension: string;
  readonly value: string;
  readonly policy: string;
  /** Name of the limit; "" for all limits of the policy by this dimension. */
  readonly limit: string;
  /** JSON, as in a policy file: `["100/s burst 200"]`. */
  readonly windows: string;
  /** Undefined: it does not end. */
  readonly untilMs: number | undefined;
  readonly reason: string;
  readonly author: string;
  readonly atMs: number;
}

/** A policy that is disabled until it ends; the policy may be one of a file. */
export interface DisabledRecord {
  readonly policy: string;
  readonly mode: "allow" | "shadow";
  readonly sinceMs: number;
  readonly untilMs: number;
  readonly reason: string;
  readonly author: string;
}

/** A subject that is kept out until it ends. */
export interface BlockRecord {
  readonly dimension: string;
  readonly value: string;
  /** Ids of the policies that keep it out. Empty: it is denied everything. */
  readonly policies: readonly string[];
  readonly untilMs: number;
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

/** A token, stored as its digest. */
export interface TokenRecord {
  readonly id: string;
  readonly name: string;
  readonly role: string;
  /** The team whose policies an editor may change. */
  readonly team: string | undefined;
  /** SHA-256, in lower-case hexadecimal digits. */
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
  /** Name of the token, `anonymous`, or `sluice` for automatic actions. */
  readonly actor: string;
  readonly role: string;
  /** The address that it came from; empty for automatic actions. */
  readonly from: string;
  /** `policy.put`, `kill_switch.on`, … */
  readonly action: string;
  /** What kind of thing changed (`policy`, `subject`, `token`, …), and `target` which one. */
  readonly kind: string;
  readonly target: string;
  readonly outcome: "done" | "refused";
  /** The reason that the actor gave, or why it was refused. */
  readonly why: string;
  /** JSON; undefined if there was nothing before, or is nothing now. */
  readonly before: string | undefined;
  readonly after: string | undefined;
  /** The generation that it made; undefined if it made none. */
  readonly generation: number | undefined;
}

/** A server process, as it reported itself. */
export interface NodeRecord {
  readonly id: string;
  readonly name: string;
  readonly version: string;
  readonly startedMs: number;
  readonly seenMs: number;
  /** The generation that it decides by. */
  readonly generation: number;
  readonly appliedMs: number;
  /** JSON: everything else that it reports. */
  readonly details: string;
}

/** The decisions of one node in one minute for the subjects that join a rollout at one step. */
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

/** What usage is summed up for: a limit of a policy, in total or for one subject. */
export interface UsageSeries {
  readonly policy: string;
  readonly limit: string;
  /** The dimension by which subjects are tracked, as `tenant`, and the subject. Both are empty for the total. */
  readonly dimension: string;
  readonly subject: string;
}

export interface UsageCounts {
  readonly decided: number;
  readonly allowed: number;
  readonly denied: number;
  /** What was charged. */
  readonly cost: number;
  /** Decisions without the counters. */
  readonly degraded: number;
  /** Decisions that a limit on trial would have denied. */
  readonly shadowDenied: number;
}

/** What one series was used in one minute, on one node. */
export interface UsageSum extends UsageSeries, UsageCounts {
  /** A whole minute. */
  readonly startMs: number;
  /** The sum of their counts is `denied`. */
  readonly denials: readonly UsageDenials[];
}

export interface UsageDenials {
  readonly reason: string;
  /** The window that denied, as policies write it; empty if none did. */
  readonly window: string;
  readonly denied: number;
}

/** Sums of one process, which are added once: `sequence` counts up with each flush of a boot. */
export interface UsageFlush {
  readonly node: string;
  readonly boot: string;
  readonly sequence: number;
  readonly sums: readonly UsageSum[];
}

/** Periods that usage is kept by. */
export type UsageStep = "minute" | "hour" | "day";

/** A period of what was asked for. Fields by which it was not kept apart are undefined. */
export interface UsagePeriod {
  readonly startMs: number;
  readonly policy: string | undefined;
  readonly limit: string | undefined;
  readonly dimension: string | undefined;
  readonly subject: string | undefined;
}

export interface UsageRow extends UsagePeriod, UsageCounts {}

export interface UsageDenialsRow extends UsagePeriod, UsageDenials {}

/** A denial, or several of the same kind that were recorded as one. */
export interface DenialRecord {
  readonly id: string;
  /** The newest denial that it stands for, which it describes, and the oldest. */
  readonly atMs: number;
  readonly sinceMs: number;
  readonly node: string;
  /** Empty if no policy decided, as while the kill switch is closed. */
  readonly policy: string;
  readonly version: number | undefined;
  /** The name or the dimensions of the limit; empty if no limit decided. */
  readonly limit: string;
  /** The dimensions that the limit counts by. */
  readonly by: readonly string[];
  /** The dimensions of the request, bounded in number and length. */
  readonly dimensions: Readonly<Record<string, string>>;
  readonly requestId: string | undefined;
  readonly reason: string;
  /** The window that denied, as policies write it; empty if none did. */
  readonly window: string;
  readonly cost: number;
  /** The most that the window holds, and what was left of it. */
  readonly capacity: number | undefined;
  readonly remaining: number | undefined;
  readonly retryAfterMs: number | undefined;
  /** Why the counters were not asked; undefined if they were. */
  readonly degraded: string | undefined;
  /** Not carried out, because its policy is in shadow mode. */
  readonly shadow: boolean;
  /** How many denials it stands for. */
  readonly denials: number;
  /** Whether it stands for denials of several subjects, of which `dimensions` has the newest. */
  readonly mixed: boolean;
}

/** A denial to be stored, and the subjects by which it is found. */
export interface DenialNote {
  readonly record: DenialRecord;
  readonly foundBy: readonly { readonly dimension: string; readonly subject: string }[];
}
