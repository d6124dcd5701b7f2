import type { ErrorBody } from "../../data-plane/transports/http/errors.ts";

/**
 * What the control plane's REST API answers, as far as commands look at it: the types of `control/control-plane.ts` in
 * `snake_case`. What is undefined there is absent here.
 */

export type JsonObject = Readonly<Record<string, unknown>>;

export interface ListBody<T> {
  readonly items: readonly T[];
  readonly next?: string | undefined;
}

export interface ChangeBody {
  readonly generation?: number | undefined;
  readonly dry_run?: boolean | undefined;
  readonly warnings?: readonly WarningBody[] | undefined;
}

export interface WarningBody {
  /** `(root)`: the whole. */
  readonly field: string;
  readonly message: string;
  readonly line?: number | undefined;
  readonly column?: number | undefined;
}

export interface AdminErrorBody extends ErrorBody {
  /** Of what was to be changed, where it is not as it was expected. */
  readonly current_version?: number | undefined;
  /** Of a subject: all that is kept of it. */
  readonly current?: SubjectBody | undefined;
}

export interface PolicyBody {
  readonly id: string;
  readonly version: number;
  readonly document: JsonObject;
  readonly owner?: string | undefined;
  readonly author: string;
  readonly why: string;
  readonly changed_ms: number;
  readonly rollout?: RolloutBody | undefined;
  readonly overridden_by?: "file" | undefined;
}

export interface VersionBody {
  readonly policy: string;
  readonly version: number;
  /** Absent where this version deleted the policy. */
  readonly document?: JsonObject | undefined;
  readonly author: string;
  readonly why: string;
  readonly at_ms: number;
  readonly revert_of?: number | undefined;
  readonly current: boolean;
  /** Absent where it was for everybody at once. */
  readonly rollout?: { readonly id: string; readonly state: RolloutStateBody; readonly shadow: boolean } | undefined;
}

export interface PolicyDiffBody {
  readonly policy: string;
  readonly from: number;
  readonly to: number;
  readonly changes: readonly unknown[];
  readonly text: string;
}

export interface StepBody {
  readonly percent: number;
  readonly hold_ms: number;
}

export interface RolloutWishBody {
  readonly steps?: readonly StepBody[] | undefined;
  readonly by?: string | undefined;
  readonly shadow?: boolean | undefined;
  readonly starts_ms?: number | undefined;
  readonly observe_for_ms?: number | undefined;
  readonly expect_more_denials?: boolean | undefined;
}

export type RolloutStateBody = "waiting" | "observing" | "running" | "paused" | "done" | "rolled_back" | "cancelled";

export interface RolloutBody {
  readonly id: string;
  readonly policy: string;
  readonly from_version: number;
  readonly to_version: number;
  readonly state: RolloutStateBody;
  readonly shadow: boolean;
  readonly by: string;
  readonly steps: readonly StepBody[];
  readonly step: number;
  readonly step_since_ms: number;
  readonly starts_ms: number;
  readonly observe_for_ms: number;
  readonly expect_more_denials: boolean;
  readonly strikes: number;
  readonly percent: number;
  /** Absent where it has ended, and from servers that do not say. */
  readonly waits_for?: WaitBody | undefined;
  readonly figures?: FiguresBody | undefined;
  readonly reason: string;
  readonly author: string;
  readonly created_ms: number;
  readonly changed_ms: number;
}

/** A newer server may wait for something that this command does not know. */
export interface WaitBody {
  readonly code: string;
  readonly until_ms?: number | undefined;
  readonly minutes?: number | undefined;
  readonly minutes_needed?: number | undefined;
  readonly decided?: number | undefined;
  readonly decided_needed?: number | undefined;
  readonly looks?: number | undefined;
  readonly looks_needed?: number | undefined;
  readonly strikes?: number | undefined;
  readonly strikes_to_roll_back?: number | undefined;
}

export interface FiguresBody {
  readonly minutes: number;
  readonly verdict: string;
  readonly sentence: string;
  readonly looks: number;
  readonly strikes: number;
  readonly total: ComparedBody;
  readonly rings: readonly (ComparedBody & { readonly step: number; readonly judged: boolean })[];
}

export interface ComparedBody {
  readonly decided: number;
  readonly denied: number;
  readonly rate: number;
  readonly baseline: number;
  readonly baseline_minutes: number;
  readonly baseline_decided: number;
  readonly sigma: number;
  readonly threshold: number;
}

export interface SubjectBody {
  readonly dimension: string;
  readonly value: string;
  readonly version: number;
  readonly tier?: string | undefined;
  readonly limits: readonly SubjectLimitBody[];
  readonly effective?: readonly EffectiveLimitBody[] | undefined;
}

export interface SubjectChangeBody extends ChangeBody {
  readonly subject: SubjectBody;
  /** The limits whose windows a new limit of the subject replaces. */
  readonly in_place_of?: readonly EffectiveLimitBody[] | undefined;
}

export interface SubjectLimitBody {
  readonly policy: string;
  readonly limit?: string | undefined;
  readonly windows: readonly string[];
  readonly until_ms?: number | undefined;
  readonly reason: string;
  readonly author: string;
  readonly at_ms: number;
}

export interface EffectiveLimitBody {
  readonly policy: string;
  readonly version: number;
  readonly limit: string;
  readonly by: readonly string[];
  readonly algorithm: string;
  readonly windows: readonly unknown[];
  readonly source: {
    readonly kind: "policy" | "tier" | "custom" | "override";
    readonly tier?: string | undefined;
    readonly until_ms?: number | undefined;
  };
  readonly mode: "enforce" | "shadow";
  readonly usage?: readonly UsageBody[] | undefined;
}

export interface UsageBody {
  readonly window: unknown;
  readonly used: number;
  readonly remaining: number;
  /** Absent: never. */
  readonly reset_after_ms?: number | undefined;
}

export interface ResetDoneBody extends ChangeBody {
  /** `policy/limit` */
  readonly limits: readonly string[];
  readonly skipped: readonly { readonly limit: string; readonly by: readonly string[] }[];
}

export interface KillSwitchBody {
  readonly mode: "off" | "open" | "closed";
  readonly since_ms?: number | undefined;
  readonly until_ms?: number | undefined;
  readonly reason?: string | undefined;
  readonly author?: string | undefined;
}

export interface AuditBody {
  readonly id: string;
  readonly at_ms: number;
  readonly actor: string;
  readonly role: string;
  readonly from: string;
  readonly action: string;
  readonly kind: string;
  readonly target: string;
  readonly outcome: "done" | "refused";
  readonly why: string;
  readonly before?: unknown;
  readonly after?: unknown;
  readonly generation?: number | undefined;
}

export interface TokenBody {
  readonly id: string;
  readonly name: string;
  readonly role: string;
  readonly team?: string | undefined;
  readonly created_ms: number;
  readonly created_by: string;
  readonly expires_ms?: number | undefined;
  readonly revoked_ms?: number | undefined;
  readonly last_used_ms?: number | undefined;
}

export interface NodesBody {
  readonly generation: number;
  readonly nodes: readonly NodeBody[];
}

export interface NodeBody {
  readonly id: string;
  readonly name: string;
  readonly version: string;
  readonly started_ms: number;
  readonly seen_ms: number;
  readonly alive: boolean;
  readonly generation: number;
  readonly applied_ms: number;
  readonly current: boolean;
}

export interface HotKeysBody {
  readonly by: "rate" | "denials";
  readonly items: readonly {
    readonly policy: string;
    readonly scope: string;
    readonly subject: string;
    readonly per_second: number;
    readonly denied_per_second: number;
    readonly error_per_second: number;
    readonly nodes: number;
  }[];
  readonly total: { readonly per_second: number; readonly denied_per_second: number };
  readonly nodes: { readonly told: number; readonly silent?: number; readonly oldest_ms: number };
  /** Of a server that was asked of itself: whether subjects are hashes. */
  readonly hashed?: boolean;
}

export interface ImportReportBody {
  readonly created: readonly string[];
  readonly changed: readonly string[];
  readonly deleted: readonly string[];
  readonly unchanged: number;
  readonly subjects: Readonly<Record<"created" | "changed" | "deleted", CountedSubjectsBody>>;
  readonly generation_before: number;
}

/** How many there are, and which the first of them are. */
export interface CountedSubjectsBody {
  readonly count: number;
  readonly first: readonly Pick<SubjectBody, "dimension" | "value">[];
}
