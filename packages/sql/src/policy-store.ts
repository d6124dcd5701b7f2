import type {
  AuditRecord,
  KillSwitchRecord,
  NodeRecord,
  PolicyRecord,
  RolloutRecord,
  RolloutState,
  SubjectLimitRecord,
  SubjectRecord,
  TallyRecord,
  TokenRecord,
  VersionRecord,
} from "./records.ts";

/**
 * Where policies and all that belongs to them are kept, durably. Rejects with `PolicyStoreUnavailable` while it cannot be
 * asked; what was asked then has not been done, or, when the answer alone was lost, has been done whole.
 */
export interface PolicyStore {
  readonly kind: "postgres" | "sqlite";
  /** For logs: the server's address or the file, without user and password. */
  readonly where: string;
  /** What a node looks at every second: one row. */
  readPulse(): Promise<Pulse>;
  /** One view, of one moment. Inside of any `work` this store is asked through what that is given, and not anew. */
  read<T>(work: (view: StoreView) => Promise<T>): Promise<T>;
  /**
   * One change of what nodes decide by, or of who may do what: one after another among all changes of all nodes, whole or not
   * at all. It is begun anew when the server says that it met another one, so `work` does nothing but ask `change`. With
   * `dryRun` everything is done, and undone. What `work` throws undoes it too, and is thrown.
   */
  change<T>(work: (change: StoreChange) => Promise<T>, options?: { readonly dryRun?: boolean | undefined }): Promise<T>;
  /** Writes what no node decides by, beside changes: nodes, tallies, audit, uses of tokens. Whole or not at all. */
  note<T>(work: (note: StoreNote) => Promise<T>): Promise<T>;
  /**
   * Whether this node is the one that does what only one should, for so long from now. Who was it stays it while they ask in
   * time; who stops asking is followed by another. Asked for 0 ms, whoever leads gives it up.
   */
  lead(node: string, forMs: number): Promise<boolean>;
  close(): Promise<void>;
}

export interface Pulse {
  /** Counts up with every change. 0: nothing was ever written. */
  readonly generation: number;
  /** Also when its end has passed. */
  readonly killSwitch: KillSwitchRecord | undefined;
}

/** A part of a long list: what comes after (or for newest-first lists before) the last one of the part before. */
export interface Page {
  readonly after?: string | undefined;
  /** Absent: all. */
  readonly limit?: number | undefined;
}

/** Reading. Lists are in order of their ids (of their bytes in UTF-8), or, where said, newest first. */
export interface StoreView {
  pulse(): Promise<Pulse>;
  /** By the store's own clock, which is the same to all nodes. */
  nowMs(): Promise<number>;
  /** Without deleted ones. */
  policies(page?: Page & { readonly owner?: string | undefined }): Promise<readonly PolicyRecord[]>;
  /** Also a deleted one. */
  policy(id: string): Promise<PolicyRecord | undefined>;
  findPolicyByRule(ruleKey: string): Promise<PolicyRecord | undefined>;
  /** Newest first; `after` is a version, in digits. */
  versions(policy: string, page?: Page): Promise<readonly VersionRecord[]>;
  version(policy: string, version: number): Promise<VersionRecord | undefined>;
  /** Of every policy that ever was, also of deleted ones. */
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
  /** `after` is the value of the last subject; only within one dimension. */
  subjects(query?: Page & { readonly dimension?: string | undefined }): Promise<readonly SubjectRecord[]>;
  subject(dimension: string, value: string): Promise<SubjectRecord | undefined>;
  /** Also those that have ended and were not swept yet. Of one subject, or of all. */
  subjectLimits(dimension?: string, value?: string): Promise<readonly SubjectLimitRecord[]>;
  tokens(): Promise<readonly TokenRecord[]>;
  token(id: string): Promise<TokenRecord | undefined>;
  /** Newest first. `target` alone or with `kind`; from `sinceMs` on, and before `untilMs`. */
  audit(query?: AuditQuery): Promise<readonly AuditRecord[]>;
  nodes(): Promise<readonly NodeRecord[]>;
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

/** Many are written together: one by one, each would take a way to the server and back. */
export type OneOrMany<Record> = Record | readonly Record[];

/** Writing what no node decides by. */
export interface StoreNote extends StoreView {
  /** Said again, it is the same. What cannot be stored of it is replaced: an attempt is recorded whatever it was about. */
  addAudit(records: OneOrMany<AuditRecord>): Promise<void>;
  /** How many that were older are gone: so many at most, because one statement that takes very long holds up others. */
  sweepAudit(beforeMs: number, limit: number): Promise<number>;
  putNode(record: NodeRecord): Promise<void>;
  deleteNode(id: string): Promise<void>;
  sweepNodes(seenBeforeMs: number): Promise<number>;
  /** Sets what a node counted in a minute: said again, it is not added. */
  putTallies(records: readonly TallyRecord[]): Promise<void>;
  sweepTallies(beforeMinute: number): Promise<number>;
  /** Never back to an earlier time. */
  touchToken(id: string, usedMs: number): Promise<void>;
}

/**
 * Changing what nodes decide by. A refusal (`RuleTaken`, `TokenNameTaken`, `VersionTaken`, `UnstorableValue`) has written nothing, and
 * whoever catches it may go on.
 */
export interface StoreChange extends StoreNote {
  /** The next generation, which this change is. Asked again within it, the same. */
  nextGeneration(): Promise<number>;
  /** In place of the one with its id, or as a new one. Rejects with `RuleTaken` where another policy has its rule key. */
  putPolicy(records: OneOrMany<PolicyRecord>): Promise<void>;
  /** Never in place of another: rejects with `VersionTaken` where the policy has one of that number. */
  addVersion(records: OneOrMany<VersionRecord>): Promise<void>;
  putRollout(record: RolloutRecord): Promise<void>;
  putSubject(records: OneOrMany<SubjectRecord>): Promise<void>;
  /** With its limits. */
  deleteSubject(dimension: string, value: string): Promise<void>;
  /** In place of one for the same policy and limit; a custom limit and an override may stand beside each other. */
  putSubjectLimit(records: OneOrMany<SubjectLimitRecord>): Promise<void>;
  /** Whether there was one. */
  deleteSubjectLimit(
    dimension: string,
    value: string,
    policy: string,
    limit: string,
    kind: "custom" | "override",
  ): Promise<boolean>;
  /** How many ended before then. */
  sweepSubjectLimits(endedBeforeMs: number): Promise<number>;
  /** Undefined: off. */
  putKillSwitch(record: KillSwitchRecord | undefined): Promise<void>;
  /** In place of the one with its id. Rejects with `TokenNameTaken` where another that is not revoked has its name. */
  putToken(record: TokenRecord): Promise<void>;
}
