import type { Window } from "sluice";
import type { Actor } from "../data-plane/access/actor.ts";
import type { Changed, ChangeOptions, Listed, PageQuery } from "./change.ts";

/** Options of a change to a subject. */
export interface SubjectChangeOptions extends ChangeOptions {
  /**
   * The version that the caller saw; 0: nothing is stored about the subject. `any`: accepts any version. Absent:
   * `version_conflict` if something different would be replaced or deleted.
   */
  readonly expected?: number | "any" | undefined;
}

/** A subject as stored. */
export interface StoredSubject {
  readonly dimension: string;
  readonly value: string;
  /** Counts up with every change; 0: nothing is stored about the subject. */
  readonly version: number;
  readonly tier: string | undefined;
  /** Its custom limits, and overrides that have not ended. */
  readonly limits: readonly SubjectLimitView[];
  /** Undefined if the subject is not kept out now. */
  readonly block: SubjectBlockView | undefined;
}

export interface SubjectBlockView {
  /** Absent: the subject is denied everything. */
  readonly policies: readonly string[] | undefined;
  readonly untilMs: number;
  readonly reason: string;
  readonly author: string;
  readonly atMs: number;
}

export interface SubjectBlockRequest {
  /** Absent: every policy. */
  readonly policies?: readonly string[] | undefined;
  readonly untilMs: number;
}

export interface SubjectView extends StoredSubject {
  /** Every limit that counts by this dimension, with the source of each number. */
  readonly effective: readonly EffectiveLimit[];
}

export interface SubjectLimitView {
  readonly policy: string;
  /** Absent: every limit of the policy that counts by this dimension. */
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
  /** The source of the windows. */
  readonly source:
    | { readonly kind: "policy" }
    | { readonly kind: "tier"; readonly tier: string }
    | { readonly kind: "custom" }
    | { readonly kind: "override"; readonly untilMs: number };
  readonly mode: "enforce" | "shadow";
  /** The state of its counters, window by window; undefined if that also depends on other dimensions. */
  readonly usage: readonly WindowUsage[] | undefined;
}

export interface WindowUsage {
  readonly window: Window;
  readonly used: number;
  readonly remaining: number;
  readonly resetAfterMs: number;
}

export interface ChangedSubject<T> extends Changed<T> {
  /** The values that the change replaced or deleted. Undefined: none. */
  readonly replaced: Pick<StoredSubject, "tier" | "limits" | "block"> | undefined;
  /** The limits whose windows a new limit of the subject replaces, as they were before. Undefined: nothing changed. */
  readonly inPlaceOf?: readonly Omit<EffectiveLimit, "usage">[] | undefined;
}

export interface SubjectLimitRequest {
  readonly policy: string;
  readonly limit?: string | undefined;
  readonly windows: readonly unknown[];
  readonly untilMs?: number | undefined;
}

export interface SubjectLimitChoice {
  /** One kind; the other may exist as well. */
  readonly kind: "custom" | "override";
  readonly policy: string;
  readonly limit?: string | undefined;
}

/**
 * Nothing is replaced or deleted unseen: a conflict shows the current value. Writing the current value changes nothing.
 */
export interface SubjectControl {
  /** Works for subjects about which nothing is stored, too. */
  get(actor: Actor, dimension: string, value: string): Promise<SubjectView>;
  /** With `tier`, only those that have it. */
  list(
    actor: Actor,
    dimension: string,
    query?: PageQuery & { readonly tier?: string | undefined },
  ): Promise<Listed<StoredSubject>>;
  /** `tier` undefined: removes the tier. */
  setTier(
    actor: Actor,
    dimension: string,
    value: string,
    tier: string | undefined,
    options?: SubjectChangeOptions,
  ): Promise<ChangedSubject<SubjectView>>;
  /**
   * A custom limit, or with `untilMs` an override that ends automatically; replaces one for the same policy and limit.
   * An override hides a custom limit, which applies again afterwards.
   */
  setLimit(
    actor: Actor,
    dimension: string,
    value: string,
    limit: SubjectLimitRequest,
    options?: SubjectChangeOptions,
  ): Promise<ChangedSubject<SubjectView>>;
  deleteLimit(
    actor: Actor,
    dimension: string,
    value: string,
    which: SubjectLimitChoice,
    options?: SubjectChangeOptions,
  ): Promise<ChangedSubject<SubjectView>>;
  /** Keeps the subject out for a time: it is denied, whatever room it has. `why` is required. */
  block(
    actor: Actor,
    dimension: string,
    value: string,
    block: SubjectBlockRequest,
    options?: SubjectChangeOptions,
  ): Promise<ChangedSubject<SubjectView>>;
  /** Ends a block now. */
  unblock(
    actor: Actor,
    dimension: string,
    value: string,
    options?: SubjectChangeOptions,
  ): Promise<ChangedSubject<SubjectView>>;
  /** Deletes the subject: tier, limits and block. */
  delete(
    actor: Actor,
    dimension: string,
    value: string,
    options?: SubjectChangeOptions,
  ): Promise<ChangedSubject<undefined>>;
  /**
   * Resets the subject's counters on every node: of each limit that counts by this dimension, or with `dimensions` the
   * counters that such a request would use.
   */
  reset(actor: Actor, dimension: string, value: string, options?: ResetOptions): Promise<Changed<ResetReport>>;
}

export interface ResetOptions extends ChangeOptions {
  readonly policy?: string | undefined;
  /** Values of further dimensions, for limits that count by several. */
  readonly alsoBy?: Readonly<Record<string, string>> | undefined;
  readonly dimensions?: Readonly<Record<string, string>> | undefined;
  /** The domain of the policies, if `policy` names none. Absent: `default`. */
  readonly domain?: string | undefined;
}

export interface ResetReport {
  /** `policy/limit` */
  readonly limits: readonly string[];
  /** Limits that also count by other dimensions whose values were not given; their counters were not reset. */
  readonly skipped: readonly { readonly limit: string; readonly by: readonly string[] }[];
}
