import type { TopSubjectRow, UsageStep } from "@sluice/sql";
import type { Actor } from "../data-plane/access/actor.ts";
import type { Listed, PageQuery } from "./change.ts";
import type { StoredPolicy } from "./policy-control.ts";

export interface SummaryRequest extends PageQuery {
  readonly owner?: string | undefined;
  /** A part of the id or the owner, in any case. */
  readonly search?: string | undefined;
  /** This policy alone. */
  readonly id?: string | undefined;
}

/** A policy in a list, with its last 24 hours. */
export interface PolicySummary
  extends Pick<StoredPolicy, "id" | "version" | "owner" | "author" | "changedMs" | "rollout" | "overriddenBy"> {
  readonly mode: "enforce" | "shadow";
  readonly prose: readonly string[];
  /** Undefined for an editor whose team does not own the policy. */
  readonly usage:
    | {
        readonly fromMs: number;
        readonly stepMs: number;
        readonly allowed: readonly number[];
        readonly denied: readonly number[];
        readonly shadowDenied: number;
      }
    | undefined;
  readonly headroom: Headroom | undefined;
}

/** How close the closest limit of a policy came to its end. */
export interface Headroom {
  readonly share: number;
  readonly limit: string;
  /** Whose windows these are. Undefined: the limit's own. */
  readonly tier: string | undefined;
  readonly window: string;
  readonly cost: number;
  readonly capacity: number;
  readonly step: UsageStep;
}

export interface TopSubjectsRequest {
  readonly dimension: string;
  readonly policy?: string | undefined;
  /** Absent: a day ago, until now. */
  readonly fromMs?: number | undefined;
  readonly toMs?: number | undefined;
  /** Absent: `decided`. */
  readonly by?: "decided" | "denied" | "cost" | undefined;
  /** Absent: 10. */
  readonly count?: number | undefined;
}

export interface TopSubjects {
  readonly dimension: string;
  readonly by: "decided" | "denied" | "cost";
  readonly step: UsageStep;
  readonly fromMs: number;
  readonly toMs: number;
  readonly items: readonly TopSubjectRow[];
}

export interface SubjectSearch extends PageQuery {
  readonly prefix: string;
  readonly dimension?: string | undefined;
}

export interface KnownSubject {
  readonly dimension: string;
  readonly value: string;
  readonly knownBy: readonly ("configured" | "usage" | "denials")[];
  readonly seenMs: number | undefined;
}

/** What views show of several things together. */
export interface SummaryControl {
  /** By id. */
  policies(actor: Actor, request?: SummaryRequest): Promise<Listed<PolicySummary>>;
  topSubjects(actor: Actor, request: TopSubjectsRequest): Promise<TopSubjects>;
  /** By dimension, then by value. */
  subjects(actor: Actor, request: SubjectSearch): Promise<Listed<KnownSubject>>;
}
