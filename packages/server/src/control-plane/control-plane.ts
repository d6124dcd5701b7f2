import type { AuditQuery, AuditRecord, RolloutRecord, RolloutState, RolloutStep } from "@sluice/sql";
import type { Problem, Window } from "sluice";
import type { Actor } from "../data-plane/access/actor.ts";
import type { Role } from "../data-plane/access/roles.ts";
import type { Audit } from "../data-plane/service/audit.ts";
import type { HotKeysWish, MergedHotKeys } from "../observe/hot-keys/merge-hot-keys.ts";
import type { RolloutWait } from "./rollouts/find-wait.ts";
import type { RolloutFigures } from "./rollouts/rollout-figures.ts";

/**
 * What people steer Sluice by. Every call says who asks; it is refused with `permission_denied` where they may not, and
 * changes and refusals are in the audit. Changes are validated whole before they are kept: what is kept, nodes can take up.
 *
 * Throws `SluiceError`: `not_found`, `version_conflict` (with the version there is), `already_exists`, `invalid_policies` and
 * `invalid_request` with every problem, `policy_store_unavailable`.
 */
export interface ControlPlane {
  readonly policies: PolicyControl;
  readonly rollouts: RolloutControl;
  readonly subjects: SubjectControl;
  readonly killSwitch: KillSwitchControl;
  readonly audit: AuditControl;
  readonly tokens: TokenControl;
  readonly nodes: NodeControl;
  readonly configuration: ConfigurationControl;
  readonly texts: TextControl;
}

/** Reads what callers send as YAML. Long texts are read in another thread, in bounded number, time and memory. */
export interface TextControl {
  /** What a text says, as plain data. Throws `invalid_request` with every problem and its place. */
  readYaml(actor: Actor, yaml: string): Promise<unknown>;
  /** Problems with what the text says, each with its line and column. */
  place(actor: Actor, yaml: string, problems: readonly Problem[]): Promise<readonly Problem[]>;
}

/** What may be said of any change. */
export interface ChangeOptions {
  /** Answers as if it were done, with every refusal there would be, and does nothing. */
  readonly dryRun?: boolean | undefined;
  /** For the history. */
  readonly why?: string | undefined;
}

/** What may be said of a change to something that is there, perhaps. */
export interface ExpectingOptions extends ChangeOptions {
  /** The version that the caller saw; 0: that there is none. Absent: that there is none, or `version_conflict`. */
  readonly expected?: number | undefined;
}

/** What may be said of a change to a subject. */
export interface SubjectChangeOptions extends ChangeOptions {
  /**
   * The version that the caller saw; 0: that nothing is kept of the subject. `any`: whatever there is. Absent: `version_conflict`
   * where something else is there, which would be replaced or deleted.
   */
  readonly expected?: number | "any" | undefined;
}

export interface Changed<T> {
  readonly value: T;
  /** The generation that nodes will decide by; undefined in a dry run, or where nothing changed. */
  readonly generation: number | undefined;
  readonly dryRun: boolean;
  /** What is legal, but may surprise. */
  readonly warnings: readonly Problem[];
}

/** A part of a long list; `next` goes into `after` for the part that follows. */
export interface Listed<T> {
  readonly items: readonly T[];
  readonly next: string | undefined;
}

export interface PageQuery {
  readonly after?: string | undefined;
  /** 1 … 1 000; absent: 100. */
  readonly limit?: number | undefined;
}

/** A policy as it is written in a file: the fields of one entry of `policies`. */
export type PolicyDocument = Readonly<Record<string, unknown>>;

export interface StoredPolicy {
  readonly id: string;
  readonly version: number;
  readonly document: PolicyDocument;
  readonly owner: string | undefined;
  readonly author: string;
  readonly why: string;
  readonly changedMs: number;
  /** Of a new version that is on its way. */
  readonly rollout: RolloutView | undefined;
  /** Set where a policy file has the same id, and files win: then this one is not in force. */
  readonly overriddenBy: "file" | undefined;
}

export interface StoredVersion {
  readonly policy: string;
  readonly version: number;
  /** Undefined: this version deleted the policy. */
  readonly document: PolicyDocument | undefined;
  readonly author: string;
  readonly why: string;
  readonly atMs: number;
  readonly revertOf: number | undefined;
  readonly current: boolean;
  /** The rollout by which this version went out, or was to; undefined: it was for everybody at once. */
  readonly rollout: Pick<RolloutRecord, "id" | "state" | "shadow"> | undefined;
}

export interface PolicyPutOptions extends ExpectingOptions {
  readonly rollout?: RolloutWish | undefined;
  /**
   * Scope, value, endpoint and tier of a policy that is written as a rule: `already_exists` where another policy has the same.
   * Absent: as it was.
   */
  readonly ruleKey?: string | undefined;
}

export interface PolicyControl {
  list(actor: Actor, query?: PageQuery & { readonly owner?: string | undefined }): Promise<Listed<StoredPolicy>>;
  get(actor: Actor, id: string): Promise<StoredPolicy>;
  /**
   * Creates or replaces. With `rollout` the new version goes out by steps, else to everybody at once. Not while another
   * version of the policy is on its way.
   */
  put(
    actor: Actor,
    id: string,
    document: PolicyDocument,
    options?: ExpectingOptions & {
      readonly rollout?: RolloutWish | undefined;
      /** Of a policy that is written as a rule: no two have the same, or `already_exists`, which names the other one. */
      readonly ruleKey?: string | undefined;
    },
  ): Promise<Changed<StoredPolicy>>;
  delete(actor: Actor, id: string, options?: ExpectingOptions): Promise<Changed<undefined>>;
  versions(actor: Actor, id: string, query?: PageQuery): Promise<Listed<StoredVersion>>;
  version(actor: Actor, id: string, version: number): Promise<StoredVersion>;
  /** What changed from one version to another; absent: from the one before, to the current one. */
  diff(actor: Actor, id: string, from?: number, to?: number): Promise<PolicyDiff>;
  /** Makes a new version with what an earlier one said; a deleted policy comes back by it. */
  revert(
    actor: Actor,
    id: string,
    version: number,
    options?: ExpectingOptions & { readonly rollout?: RolloutWish | undefined },
  ): Promise<Changed<StoredPolicy>>;
  /** Everything that is wrong with a document, among the policies there are, and everything that may surprise. */
  validate(
    actor: Actor,
    document: PolicyDocument,
  ): Promise<{ problems: readonly Problem[]; warnings: readonly Problem[] }>;
}

export interface PolicyDiff {
  readonly policy: string;
  readonly from: number;
  readonly to: number;
  /** By place, in order. */
  readonly changes: readonly {
    readonly path: string;
    readonly change: "added" | "removed" | "changed";
    readonly before: unknown;
    readonly after: unknown;
  }[];
  /** Both as YAML, line by line: ` ` the same, `-` only before, `+` only after. */
  readonly text: string;
}

/** How a new version is to go out. */
export interface RolloutWish {
  /** Absent: 1 % and 10 % for ten minutes each, then everybody. */
  readonly steps?: readonly RolloutStep[] | undefined;
  /** Absent: what the policy's `rollout.by` says, else the first dimension of its first limit. */
  readonly by?: string | undefined;
  /** Only to be looked at. */
  readonly shadow?: boolean | undefined;
  /** Absent: the policy's `valid_from`, else now. */
  readonly startsMs?: number | undefined;
  readonly observeForMs?: number | undefined;
  readonly expectMoreDenials?: boolean | undefined;
}

export interface RolloutView extends Omit<RolloutRecord, "figures"> {
  /** Of subjects, under the new version now. */
  readonly percent: number;
  readonly figures: RolloutFigures | undefined;
  /** Why it does not go on now; undefined: it has ended, or this is a list of policies. */
  readonly waitsFor: RolloutViewWait | undefined;
}

/** Also `kill_switch`: while it decides, nothing goes forward. `due`: nothing keeps it; a node takes the step within seconds. */
export type RolloutViewWait =
  | RolloutWait
  | { readonly code: "kill_switch"; readonly untilMs: number }
  | { readonly code: "due" };

/** What may be said of a move. */
export interface RolloutMoveOptions extends ChangeOptions {
  /** The step that the caller saw, −1 before the first: so that two who advance it at once take one step, not two. Absent: whichever it is. */
  readonly expectedStep?: number | undefined;
}

export interface RolloutControl {
  list(
    actor: Actor,
    query?: PageQuery & { readonly policy?: string | undefined; readonly states?: readonly RolloutState[] | undefined },
  ): Promise<Listed<RolloutView>>;
  get(actor: Actor, id: string): Promise<RolloutView>;
  /** The next step, or the end of it. */
  advance(actor: Actor, id: string, options?: RolloutMoveOptions): Promise<Changed<RolloutView>>;
  pause(actor: Actor, id: string, options?: RolloutMoveOptions): Promise<Changed<RolloutView>>;
  resume(actor: Actor, id: string, options?: RolloutMoveOptions): Promise<Changed<RolloutView>>;
  /** To everybody, now. */
  finish(actor: Actor, id: string, options?: RolloutMoveOptions): Promise<Changed<RolloutView>>;
  /** Back to the old version, for everybody. */
  rollBack(actor: Actor, id: string, options?: RolloutMoveOptions): Promise<Changed<RolloutView>>;
}

/** What is kept of a subject. */
export interface KeptSubject {
  readonly dimension: string;
  readonly value: string;
  /** Counts up with every change; 0: nothing is known of the subject. */
  readonly version: number;
  readonly tier: string | undefined;
  /** Its custom limits, and overrides that have not ended. */
  readonly limits: readonly SubjectLimitView[];
}

export interface SubjectView extends KeptSubject {
  /** Every limit that is by this dimension, with where each number comes from. */
  readonly effective: readonly EffectiveLimit[];
}

export interface SubjectLimitView {
  readonly policy: string;
  /** Absent: every limit of the policy that is by this dimension. */
  readonly limit: string | undefined;
  readonly windows: readonly string[];
  readonly untilMs: number | undefined;
  readonly reason: string;
  readonly author: string;
  readonly atMs: number;
}

export interface EffectiveLimit {
  readonly policy: string;
  readonly version: number;
  /** The limit's name, else its dimensions. */
  readonly limit: string;
  readonly by: readonly string[];
  readonly algorithm: string;
  readonly windows: readonly Window[];
  /** Where the windows come from. */
  readonly source:
    | { readonly kind: "policy" }
    | { readonly kind: "tier"; readonly tier: string }
    | { readonly kind: "custom" }
    | { readonly kind: "override"; readonly untilMs: number };
  readonly mode: "enforce" | "shadow";
  /** How its counters stand, window by window; undefined where other dimensions than this one are needed to tell. */
  readonly usage: readonly WindowUsage[] | undefined;
}

export interface WindowUsage {
  readonly window: Window;
  readonly used: number;
  readonly remaining: number;
  readonly resetAfterMs: number;
}

export interface ChangedSubject<T> extends Changed<T> {
  /** What was there and is not any more, of what was changed. Undefined: nothing. */
  readonly replaced: Pick<KeptSubject, "tier" | "limits"> | undefined;
  /** The limits whose windows a new limit of the subject takes the place of, as they were until then. Undefined: nothing changed. */
  readonly inPlaceOf?: readonly Omit<EffectiveLimit, "usage">[] | undefined;
}

/** Nothing that is there is replaced or deleted unseen: a conflict tells what it is. Writing what is there changes nothing. */
export interface SubjectControl {
  /** Also of a subject that nothing is known of. */
  get(actor: Actor, dimension: string, value: string): Promise<SubjectView>;
  list(actor: Actor, dimension: string, query?: PageQuery): Promise<Listed<KeptSubject>>;
  /** `tier` undefined: none of its own any more. */
  setTier(
    actor: Actor,
    dimension: string,
    value: string,
    tier: string | undefined,
    options?: SubjectChangeOptions,
  ): Promise<ChangedSubject<SubjectView>>;
  /**
   * A custom limit, or with `untilMs` an override that ends by itself; in place of one for the same policy and limit. Under an
   * override a custom limit stays, and holds again after it.
   */
  setLimit(
    actor: Actor,
    dimension: string,
    value: string,
    limit: {
      readonly policy: string;
      readonly limit?: string | undefined;
      readonly windows: readonly unknown[];
      readonly untilMs?: number | undefined;
    },
    options?: SubjectChangeOptions,
  ): Promise<ChangedSubject<SubjectView>>;
  deleteLimit(
    actor: Actor,
    dimension: string,
    value: string,
    which: {
      /** Either may stand beside the other. */
      readonly kind: "custom" | "override";
      readonly policy: string;
      readonly limit?: string | undefined;
    },
    options?: SubjectChangeOptions,
  ): Promise<ChangedSubject<SubjectView>>;
  /** Forgets all of the subject: tier and limits. */
  delete(
    actor: Actor,
    dimension: string,
    value: string,
    options?: SubjectChangeOptions,
  ): Promise<ChangedSubject<undefined>>;
  /**
   * Forgets the subject's counters, on every node: of each limit that counts by this dimension, or with `dimensions` those that a
   * request like it is counted in.
   */
  reset(
    actor: Actor,
    dimension: string,
    value: string,
    options?: ChangeOptions & {
      readonly policy?: string | undefined;
      /** Values of further dimensions, for limits that count by several. */
      readonly alsoBy?: Readonly<Record<string, string>> | undefined;
      readonly dimensions?: Readonly<Record<string, string>> | undefined;
      /** Whose policies, where `policy` names none. Absent: `default`. */
      readonly domain?: string | undefined;
    },
  ): Promise<Changed<ResetReport>>;
}

export interface ResetReport {
  /** `policy/limit` */
  readonly limits: readonly string[];
  /** Limits that count by the dimension and by others whose values were not given, so that nothing of them was reset. */
  readonly skipped: readonly { readonly limit: string; readonly by: readonly string[] }[];
}

export interface KillSwitchView {
  /** `off` also from the moment that it ends. */
  readonly mode: "off" | "open" | "closed";
  readonly sinceMs: number | undefined;
  readonly untilMs: number | undefined;
  readonly reason: string | undefined;
  readonly author: string | undefined;
}

export interface KillSwitchControl {
  get(actor: Actor): Promise<KillSwitchView>;
  /** `why` is required. Absent `forMs`: an hour; at most a day. */
  on(
    actor: Actor,
    mode: "open" | "closed",
    options: ChangeOptions & { readonly forMs?: number | undefined },
  ): Promise<Changed<KillSwitchView>>;
  off(actor: Actor, options?: ChangeOptions): Promise<Changed<KillSwitchView>>;
}

export interface AuditControl extends Audit {
  list(actor: Actor, query?: AuditQuery): Promise<Listed<AuditRecord>>;
}

export interface TokenView {
  readonly id: string;
  readonly name: string;
  readonly role: Role;
  readonly team: string | undefined;
  readonly createdMs: number;
  readonly createdBy: string;
  readonly expiresMs: number | undefined;
  readonly revokedMs: number | undefined;
  readonly lastUsedMs: number | undefined;
}

export interface TokenControl {
  list(actor: Actor): Promise<readonly TokenView[]>;
  /** The only time that the token itself is told. Absent `expiresMs`: 90 days from now. */
  make(
    actor: Actor,
    wish: {
      readonly name: string;
      readonly role: Role;
      readonly team?: string | undefined;
      readonly expiresMs?: number | undefined;
    },
    options?: ChangeOptions,
  ): Promise<Changed<TokenView & { readonly token: string }>>;
  revoke(actor: Actor, id: string, options?: ChangeOptions): Promise<Changed<TokenView>>;
}

export interface NodeView {
  readonly id: string;
  readonly name: string;
  readonly version: string;
  readonly startedMs: number;
  readonly seenMs: number;
  /** Heard of within the last few seconds. */
  readonly alive: boolean;
  readonly generation: number;
  readonly appliedMs: number;
  /** Decides by the newest generation. */
  readonly current: boolean;
  readonly details: Readonly<Record<string, unknown>>;
}

export interface HotKeysView extends MergedHotKeys {
  /** Nodes that are alive and tell nothing of hot keys; undefined while the policy store cannot be asked which there are. */
  readonly silent: number | undefined;
}

export interface NodeControl {
  list(actor: Actor): Promise<{ readonly generation: number; readonly nodes: readonly NodeView[] }>;
  /**
   * The counters that are asked for most, or denied most: by this node now, and by the others when they last told. `node` is the id
   * or the name of a node: only what it tells; `resource_not_found` where none that is alive has it. Without the policy store,
   * what this node tells alone.
   */
  hotKeys(actor: Actor, query?: HotKeysWish & { readonly node?: string | undefined }): Promise<HotKeysView>;
}

export interface ConfigurationControl {
  /** All policies, subjects and the default, as a policy file in YAML. Overrides that end are told with their end. */
  export(actor: Actor): Promise<string>;
  /**
   * Takes up a policy file whole. `merge`: what it does not name stays; `replace`: is deleted. Each policy that differs gets a
   * new version. What is there is neither changed nor deleted unseen: a policy, or what a subject has.
   */
  import(actor: Actor, text: string, options?: ImportOptions): Promise<Changed<ImportReport>>;
}

export interface ImportOptions extends ChangeOptions {
  /** Absent: `merge`. */
  readonly mode?: "merge" | "replace" | undefined;
  /**
   * The generation that the caller saw. `any`: whatever there is. Absent: `version_conflict` where something that is there would be
   * changed or deleted, but not in a dry run, by which the caller sees it.
   */
  readonly expected?: number | "any" | undefined;
}

export interface ImportReport {
  readonly created: readonly string[];
  readonly changed: readonly string[];
  readonly deleted: readonly string[];
  readonly unchanged: number;
  readonly subjects: Readonly<Record<"created" | "changed" | "deleted", CountedSubjects>>;
  /** The generation that it met: what a caller of a dry run has seen. */
  readonly generationBefore: number;
}

/** How many there are, and which the first of them are. */
export interface CountedSubjects {
  readonly count: number;
  readonly first: readonly Pick<KeptSubject, "dimension" | "value">[];
}
