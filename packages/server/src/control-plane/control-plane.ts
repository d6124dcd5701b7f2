import type { AuditQuery, AuditRecord } from "@sluice/sql";
import type { Problem } from "sluice";
import type { Actor } from "../data-plane/access/actor.ts";
import type { Role } from "../data-plane/access/roles.ts";
import type { Audit } from "../data-plane/service/audit.ts";
import type { HotKeysRequest, MergedHotKeys } from "../observe/hot-keys/merge-hot-keys.ts";
import type { Changed, ChangeOptions, Listed } from "./change.ts";
import type { DenialControl } from "./denial-control.ts";
import type { DisablingControl } from "./disabling-control.ts";
import type { PlanControl } from "./plan-control.ts";
import type { PolicyControl, PolicyDocument } from "./policy-control.ts";
import type { RolloutControl } from "./rollout-control.ts";
import type { StoredSubject, SubjectControl } from "./subject-control.ts";
import type { SummaryControl } from "./summary-control.ts";
import type { UsageControl } from "./usage-control.ts";
import type { RecordingControl, SimulationControl } from "./what-if-control.ts";

/**
 * The use cases of the control plane. Every call names its actor; it is refused with `permission_denied` if the actor
 * may not make it, and changes and refusals are audited. Changes are validated as a whole before they are stored, so
 * nodes can apply everything that is stored.
 *
 * Throws `SluiceError`: `not_found`, `version_conflict` (with the current version), `already_exists`,
 * `invalid_policies` and `invalid_request` with every problem, `policy_store_unavailable`.
 */
export interface ControlPlane {
  readonly policies: PolicyControl;
  readonly plans: PlanControl;
  readonly disabling: DisablingControl;
  readonly rollouts: RolloutControl;
  readonly subjects: SubjectControl;
  readonly killSwitch: KillSwitchControl;
  readonly audit: AuditControl;
  readonly usage: UsageControl;
  readonly summaries: SummaryControl;
  readonly denials: DenialControl;
  readonly tokens: TokenControl;
  readonly nodes: NodeControl;
  readonly configuration: ConfigurationControl;
  readonly texts: TextControl;
  readonly recordings: RecordingControl;
  readonly simulations: SimulationControl;
}

/** Parses YAML from callers. Long texts are parsed in another thread, bounded in number, time and memory. */
export interface TextControl {
  /** The content of a text, as plain data. Throws `invalid_request` with every problem and its place. */
  readYaml(actor: Actor, yaml: string): Promise<unknown>;
  /** Problems with the content of the text, each with its line and column. */
  place(actor: Actor, yaml: string, problems: readonly Problem[]): Promise<readonly Problem[]>;
}

export interface KillSwitchView {
  /** `off` as soon as it ends, too. */
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

export interface NewTokenRequest {
  readonly name: string;
  readonly role: Role;
  readonly team?: string | undefined;
  /** Absent: 90 days from now. */
  readonly expiresMs?: number | undefined;
}

export interface TokenControl {
  list(actor: Actor): Promise<readonly TokenView[]>;
  /** The token itself is returned only here. */
  make(
    actor: Actor,
    request: NewTokenRequest,
    options?: ChangeOptions,
  ): Promise<Changed<TokenView & { readonly token: string }>>;
  /** An admin token for one session of the console: it expires after twelve hours. */
  makeForConsole(actor: Actor): Promise<Changed<TokenView & { readonly token: string }>>;
  revoke(actor: Actor, id: string, options?: ChangeOptions): Promise<Changed<TokenView>>;
}

export interface NodeView {
  readonly id: string;
  readonly name: string;
  readonly version: string;
  readonly startedMs: number;
  readonly seenMs: number;
  /** Reported within the last few seconds. */
  readonly alive: boolean;
  readonly generation: number;
  readonly appliedMs: number;
  /** Decides by the newest generation. */
  readonly current: boolean;
  readonly details: Readonly<Record<string, unknown>>;
}

export interface HotKeysView extends MergedHotKeys {
  /** Nodes that are alive and report no hot keys; undefined while the policy store is unavailable. */
  readonly silent: number | undefined;
}

export interface NodeControl {
  list(actor: Actor): Promise<{ readonly generation: number; readonly nodes: readonly NodeView[] }>;
  /**
   * The counters that are checked or denied most: by this node now, and by the others as of their last report. `node`
   * is the id or the name of a node: only its report; `resource_not_found` if no such node is alive. Without the policy
   * store, only this node's report.
   */
  hotKeys(actor: Actor, query?: HotKeysRequest & { readonly node?: string | undefined }): Promise<HotKeysView>;
}

export interface ConfigurationControl {
  /** All policies, subjects and the default, as a policy file in YAML. Overrides are included with their end. */
  export(actor: Actor): Promise<string>;
  /**
   * Applies a policy file as a whole. `merge` keeps policies and subjects that it does not name; `replace` deletes
   * them. Each policy that differs gets a new version. No existing policy or subject is changed or deleted unseen.
   */
  import(actor: Actor, text: string, options?: ImportOptions): Promise<Changed<ImportReport>>;
  /**
   * What an import would do, policy by policy, with every problem in its place. It is for everyone who may read, and says nothing
   * about whether the caller may import.
   */
  plan(actor: Actor, text: string, options?: Pick<ImportOptions, "mode">): Promise<ImportPlan>;
}

export interface ImportPlan {
  /** That it was compared with. */
  readonly generation: number;
  /** In order of ids; deletions last. */
  readonly policies: readonly PlannedPolicy[];
  readonly subjects: ImportReport["subjects"];
  readonly subjectsInFiles: number;
  readonly warnings: readonly Problem[];
}

export interface PlannedPolicy {
  readonly policy: string;
  readonly action: "create" | "change" | "delete" | "unchanged";
  /** The version that is there; 0: none. */
  readonly version: number;
  /** What would be stored. Undefined of a deletion, of what is unchanged, and of what is too long to be shown. */
  readonly document: PolicyDocument | undefined;
  /** Line by line. Undefined of what is unchanged, and of what is too long to be shown. */
  readonly diff: string | undefined;
  /** One that is underway. */
  readonly rollout: { readonly id: string; readonly toVersion: number; readonly percent: number } | undefined;
}

export interface ImportOptions extends ChangeOptions {
  /** Absent: `merge`. */
  readonly mode?: "merge" | "replace" | undefined;
  /**
   * The generation that the caller saw. `any`: accepts any generation. Absent: `version_conflict` if an existing object
   * would be changed or deleted, except in a dry run, which shows it to the caller.
   */
  readonly expected?: number | "any" | undefined;
}

export interface ImportReport {
  readonly created: readonly string[];
  readonly changed: readonly string[];
  readonly deleted: readonly string[];
  readonly unchanged: number;
  readonly subjects: Readonly<Record<"created" | "changed" | "deleted", CountedSubjects>>;
  /** The generation that it was based on, which a caller of a dry run has seen. */
  readonly generationBefore: number;
}

/** Their number, and the first few of them. */
export interface CountedSubjects {
  readonly count: number;
  readonly first: readonly Pick<StoredSubject, "dimension" | "value">[];
}
