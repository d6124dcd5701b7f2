import type {
  AuditRecord,
  BlockRecord,
  DenialNote,
  DenialRecord,
  DisabledRecord,
  KillSwitchRecord,
  NodeRecord,
  PolicyRecord,
  RolloutRecord,
  RolloutState,
  SubjectLimitRecord,
  SubjectRecord,
  TallyRecord,
  TokenRecord,
  UsageCounts,
  UsageDenialsRow,
  UsageFlush,
  UsageRow,
  UsageStep,
  VersionRecord,
} from "./records.ts";

/**
 * Stores policies and everything that belongs to them, durably. Rejects with `PolicyStoreUnavailable` while it is unavailable; the
 * change then was not made, or, if only the answer was lost, was made whole.
 */
export interface PolicyStore {
  readonly kind: "postgres" | "sqlite";
  /** For logs: the server's address or the file, without user and password. */
  readonly where: string;
  /** What a node reads every second: one row. */
  readPulse(): Promise<Pulse>;
  /** One view, of one moment. Inside of `work`, use the view that it is given, and not the store. */
  read<T>(work: (view: StoreView) => Promise<T>): Promise<T>;
  /**
   * One change of what nodes decide by, or of permissions. Changes of all nodes happen one after another, each whole or
   * not at all. A change that conflicts with another is retried, so `work` must do nothing but use `change`. With
   * `dryRun` everything is done, and undone. An error that `work` throws also undoes it, and is thrown.
   */
  change<T>(work: (change: StoreChange) => Promise<T>, options?: { readonly dryRun?: boolean | undefined }): Promise<T>;
  /** Writes what no node decides by, without waiting for changes: nodes, tallies, audit, uses of tokens. Whole or not at all. */
  note<T>(work: (note: StoreNote) => Promise<T>): Promise<T>;
  /** The same for jobs that read a lot, with minutes instead of seconds. Nothing that a request waits for may wait for it. */
  upkeep<T>(work: (note: StoreNote) => Promise<T>): Promise<T>;
  /**
   * Whether this node is the leader, which does the jobs that only one node should do, for the next `forMs`. A leader
   * stays the leader while it asks in time, and is replaced if it stops asking. A leader that asks for 0 ms resigns.
   */
  lead(node: string, forMs: number): Promise<boolean>;
  close(): Promise<void>;
}

export interface PolicyStoreOptions {
  /**
   * `postgres://user:password@host:5432/database` with `sslmode`, `sslrootcert` and the like as `pg` knows them, `sqlite:/a/file`,
   * or `sqlite::memory:` for a store that is gone when it is closed.
   */
  readonly url: string;
  /** Reads the password, for each new connection, if the URL has none: for one that is rotated. */
  readonly readPassword?: (() => Promise<string>) | undefined;
  /** The name that PostgreSQL shows for these connections. */
  readonly applicationName?: string | undefined;
  /** Whether changes are announced by NOTIFY, if the server has it. Absent: yes. */
  readonly notify?: boolean | undefined;
  /** How long connecting may take. */
  readonly connectTimeoutMs?: number | undefined;
  /** How long the server may take for a statement. */
  readonly statementTimeoutMs?: number | undefined;
}

export interface Pulse {
  /** Counts up with every change. 0: nothing was written yet. */
  readonly generation: number;
  /** Returned even if its end has passed. */
  readonly killSwitch: KillSwitchRecord | undefined;
}

/** A page of a long list: the records after `after`, the last record of the previous page. */
export interface Page {
  readonly after?: string | undefined;
  /** Absent: all. */
  readonly limit?: number | undefined;
}

/** Reading. Lists are ordered by id (by its bytes in UTF-8), or newest first if it says so. */
export interface StoreView {
  pulse(): Promise<Pulse>;
  /** By the store's clock, which is the same for all nodes. */
  nowMs(): Promise<number>;
  /** Without deleted ones. */
  policies(page?: Page & { readonly owner?: string | undefined }): Promise<readonly PolicyRecord[]>;
  /** Finds deleted policies too. */
  policy(id: string): Promise<PolicyRecord | undefined>;
  findPolicyByRule(ruleKey: string): Promise<PolicyRecord | undefined>;
  /** Newest first; `after` is a version, in digits. */
  versions(policy: string, page?: Page): Promise<readonly VersionRecord[]>;
  version(policy: string, version: number): Promise<VersionRecord | undefined>;
  /** Of every policy, deleted ones included. */
  newestVersions(): Promise<ReadonlyMap<string, number>>;
  /** Newest first. `toVersions`: only those to one of these versions, both ends included. */
  rollouts(
    query?: Page & {
      readonly policy?: string | undefined;
      readonly states?: readonly RolloutState[] | undefined;
      readonly toVersions?: { readonly from: number; readonly to: number } | undefined;
    },
  ): Promise<readonly RolloutRecord[]>;
  rollout(id: string): Promise<RolloutRecord | undefined>;
  tallies(rollout: string, sinceMinute?: number): Promise<readonly TallyRecord[]>;
  /** `after` is the value of the last subject, and requires `dimension`. `tier`: only subjects that have it. */
  subjects(
    query?: Page & { readonly dimension?: string | undefined; readonly tier?: string | undefined },
  ): Promise<readonly SubjectRecord[]>;
  /** How many subjects have each tier, in order of dimensions. Without those that have none. */
  countTiers(): Promise<readonly TierCount[]>;
  subject(dimension: string, value: string): Promise<SubjectRecord | undefined>;
  /** Of one subject, or of all. Includes those that have ended and were not deleted yet. */
  subjectLimits(dimension?: string, value?: string): Promise<readonly SubjectLimitRecord[]>;
  /** Disabled policies, those included that have ended. */
  disabled(): Promise<readonly DisabledRecord[]>;
  /** Blocked subjects, those included whose block has ended; of one dimension or one subject if they are named. */
  blocks(dimension?: string, value?: string): Promise<readonly BlockRecord[]>;
  tokens(): Promise<readonly TokenRecord[]>;
  token(id: string): Promise<TokenRecord | undefined>;
  /** Newest first. `target` alone or with `kind`; starting at `sinceMs`, and before `untilMs`. */
  audit(query?: AuditQuery): Promise<readonly AuditRecord[]>;
  nodes(): Promise<readonly NodeRecord[]>;
  /** By time, then by the fields of `by`. Periods without decisions are left out. */
  usage(query: UsageQuery): Promise<readonly UsageRow[]>;
  usageDenials(query: UsageQuery): Promise<readonly UsageDenialsRow[]>;
  /** Who used most of a dimension's subjects, the most first. */
  topSubjects(query: TopSubjectsQuery): Promise<readonly TopSubjectRow[]>;
  /**
   * The largest cost of one subject in one period, by policy, limit, dimension and the subject's tier; an empty dimension: of all
   * subjects together. Subjects with limits for the policy that are theirs alone are left out.
   */
  usagePeaks(query: UsagePeaksQuery): Promise<readonly UsagePeak[]>;
  /**
   * Subjects that begin with a text, by each place that knows them: at most `atMost` of each, in order of dimension and value. A
   * subject is repeated for each place.
   */
  knownSubjects(query: KnownSubjectQuery): Promise<readonly KnownSubjectRow[]>;
  /** Newest first. */
  denials(query: DenialQuery): Promise<readonly DenialRecord[]>;
  /** How many denials all matching records stand for; of these, those in records of several subjects. */
  countDenials(query: Omit<DenialQuery, "after" | "atMost">): Promise<DenialCount>;
}

export interface TierCount {
  readonly tier: string;
  readonly dimension: string;
  readonly subjects: number;
}

/** The policies of a team: those that the store says it owns, and others by name. */
export interface OwnedPolicies {
  readonly owner: string;
  readonly also: readonly string[];
  /** Not these, although the store says so. */
  readonly except: readonly string[];
}

export interface DenialQuery {
  /** At `fromMs` or later, and before `toMs`. */
  readonly fromMs: number;
  readonly toMs: number;
  readonly policy?: string | undefined;
  readonly limit?: string | undefined;
  /** Requests with this value of this dimension. */
  readonly found?: { readonly dimension: string; readonly subject: string } | undefined;
  /** Only policies of this team. */
  readonly owned?: OwnedPolicies | undefined;
  /** Records after this one. */
  readonly after?: Pick<DenialRecord, "atMs" | "id"> | undefined;
  readonly atMost: number;
}

export interface DenialCount {
  readonly denials: number;
  readonly mixed: number;
}

export interface UsageQuery {
  readonly step: UsageStep;
  /** Periods that begin at `fromMs` or later, and before `toMs`. */
  readonly fromMs: number;
  readonly toMs: number;
  readonly policy?: string | undefined;
  /** Any of these, at least one. */
  readonly policies?: readonly string[] | undefined;
  readonly limit?: string | undefined;
  /** Usage of subjects of this dimension, and of one subject. Absent: the totals. */
  readonly dimension?: string | undefined;
  readonly subject?: string | undefined;
  /** Only policies of this team. */
  readonly owned?: OwnedPolicies | undefined;
  /** What to keep apart. Everything else is added up. */
  readonly by: readonly ("policy" | "limit" | "subject")[];
  /** Rows after this one: its period, and its fields of `by` in order. */
  readonly after?: readonly [startMs: number, ...fields: string[]] | undefined;
  readonly atMost: number;
}

export interface TopSubjectsQuery {
  readonly step: UsageStep;
  readonly fromMs: number;
  readonly toMs: number;
  readonly dimension: string;
  readonly policy?: string | undefined;
  readonly owned?: OwnedPolicies | undefined;
  readonly by: "decided" | "denied" | "cost";
  readonly atMost: number;
}

export interface TopSubjectRow extends UsageCounts {
  readonly subject: string;
}

export interface UsagePeaksQuery {
  readonly step: UsageStep;
  readonly fromMs: number;
  readonly toMs: number;
  /** At least one. */
  readonly policies: readonly string[];
}

export interface UsagePeak {
  readonly policy: string;
  readonly limit: string;
  readonly dimension: string;
  readonly tier: string | undefined;
  readonly cost: number;
}

export interface KnownSubjectQuery {
  readonly prefix: string;
  readonly dimension?: string | undefined;
  readonly after?: { readonly dimension: string; readonly value: string } | undefined;
  readonly owned?: OwnedPolicies | undefined;
  readonly atMost: number;
}

export interface KnownSubjectRow {
  readonly dimension: string;
  readonly value: string;
  readonly by: "usage" | "configured" | "denials";
  readonly seenMs: number | undefined;
}

export interface AuditQuery extends Page {
  readonly kind?: string | undefined;
  readonly target?: string | undefined;
  readonly actor?: string | undefined;
  readonly action?: string | undefined;
  readonly outcome?: AuditRecord["outcome"] | undefined;
  readonly sinceMs?: number | undefined;
  readonly untilMs?: number | undefined;
}

/** Several records are written together: one by one, each would take a round trip. */
export type OneOrMany<Record> = Record | readonly Record[];

/** Writing what no node decides by. */
export interface StoreNote extends StoreView {
  /** Adding a record again changes nothing. Characters that cannot be stored are replaced, so that every attempt is recorded. */
  addAudit(records: OneOrMany<AuditRecord>): Promise<void>;
  /** Returns how many were deleted: at most `limit`, because one very long statement would block others. */
  deleteAuditBefore(beforeMs: number, limit: number): Promise<number>;
  putNode(record: NodeRecord): Promise<void>;
  deleteNode(id: string): Promise<void>;
  deleteNodesSeenBefore(seenBeforeMs: number): Promise<number>;
  /** Sets what a node counted in a minute. Writing it again does not add. */
  putTallies(records: readonly TallyRecord[]): Promise<void>;
  deleteTalliesBefore(beforeMinute: number): Promise<number>;
  /** Returns false, and adds nothing, if this flush was added before. */
  addUsage(flush: UsageFlush): Promise<boolean>;
  /** Plans to add up every hour of which a flush has changed a minute since the last plan. */
  planUsage(): Promise<void>;
  /** Adds up the minutes of one planned hour, and the hours of its day. Returns whether there was one. */
  rollUpUsage(): Promise<boolean>;
  /** Deletes the oldest period of a step, if it began before. Returns whether there was one. */
  deleteOldestUsage(step: UsageStep, beforeMs: number): Promise<boolean>;
  /** Deletes series that were not used since, at most `limit`, and what was remembered of flushes. Returns how many series. */
  deleteUnusedUsageSeries(beforeMs: number, limit: number): Promise<number>;
  /** Adding a record again changes nothing. Characters that cannot be stored are replaced. */
  addDenials(notes: readonly DenialNote[]): Promise<void>;
  /** Deletes the oldest: those before, and those beyond the number to keep. Returns how many: at most about `limit`. */
  deleteOldDenials(beforeMs: number, keep: number, limit: number): Promise<number>;
  /** Never sets an earlier time. */
  touchToken(id: string, usedMs: number): Promise<void>;
}

/**
 * Changing what nodes decide by. A refusal (`RuleTaken`, `TokenNameTaken`, `VersionTaken`, `UnstorableValue`) has written nothing, and
 * code that catches it may go on.
 */
export interface StoreChange extends StoreNote {
  /** The generation that this change makes. Within one change it is always the same. */
  nextGeneration(): Promise<number>;
  /** Replaces the policy with its id, or adds one. Rejects with `RuleTaken` if another policy has its rule key. */
  putPolicy(records: OneOrMany<PolicyRecord>): Promise<void>;
  /** Never replaces a version: rejects with `VersionTaken` if the policy has one of that number. */
  addVersion(records: OneOrMany<VersionRecord>): Promise<void>;
  putRollout(record: RolloutRecord): Promise<void>;
  putSubject(records: OneOrMany<SubjectRecord>): Promise<void>;
  /** Deletes its limits too. */
  deleteSubject(dimension: string, value: string): Promise<void>;
  /** Replaces the one for the same policy and limit. A custom limit and an override may both exist. */
  putSubjectLimit(records: OneOrMany<SubjectLimitRecord>): Promise<void>;
  /** Returns whether there was one. */
  deleteSubjectLimit(
    dimension: string,
    value: string,
    policy: string,
    limit: string,
    kind: "custom" | "override",
  ): Promise<boolean>;
  /** Returns how many were deleted. */
  deleteEndedSubjectLimits(endedBeforeMs: number): Promise<number>;
  /** Replaces the one of the policy. */
  putDisabled(record: DisabledRecord): Promise<void>;
  /** Returns whether there was one. */
  deleteDisabled(policy: string): Promise<boolean>;
  /** Replaces the one of the subject. */
  putBlock(records: OneOrMany<BlockRecord>): Promise<void>;
  /** Returns whether there was one. */
  deleteBlock(dimension: string, value: string): Promise<boolean>;
  /** Deletes disabled policies and blocks that ended before. Returns how many. */
  deleteEndedExceptions(endedBeforeMs: number): Promise<number>;
  /** Deletes tokens whose name begins like this, and that expired or were revoked before. Returns how many. */
  deleteEndedTokens(namePrefix: string, endedBeforeMs: number): Promise<number>;
  /** Undefined: off. */
  putKillSwitch(record: KillSwitchRecord | undefined): Promise<void>;
  /** Replaces the token with its id. Rejects with `TokenNameTaken` if another token that is not revoked has its name. */
  putToken(record: TokenRecord): Promise<void>;
}
