import type { Actor } from "../data-plane/access/actor.ts";
import type { Changed, ExpectingOptions, Listed, PageQuery } from "./change.ts";
import type { RolloutRequest, RolloutView } from "./rollout-control.ts";

export interface PlanSummary {
  readonly plan: string;
  /** 0: no stored policy has windows for it. */
  readonly version: number;
  readonly policies: number;
  readonly limits: number;
  readonly subjects: number;
}

/** A limit of a policy, as plans name it. */
export interface NamedLimit {
  readonly policy: string;
  readonly limit: string;
  readonly by: readonly string[];
}

/** A tier across all policies: the windows that its subjects have in place of the limits' own. */
export interface PlanView {
  readonly plan: string;
  /** Stands for `limits`: equal if they are. 0: there are none. */
  readonly version: number;
  /** By policy. */
  readonly limits: readonly (NamedLimit & { readonly windows: readonly unknown[] })[];
  /** Limits that know other plans but not this one. Without `windows`, such a limit is for its plans alone. */
  readonly without: readonly (NamedLimit & {
    readonly windows: readonly unknown[] | undefined;
    readonly plans: readonly string[];
  })[];
  /** Limits of policy files. */
  readonly inFiles: readonly (NamedLimit & { readonly windows: readonly string[] })[];
  readonly subjects: readonly { readonly dimension: string; readonly count: number }[];
}

export interface PlanLimitRequest {
  readonly policy: string;
  /** Absent: the only limit of the policy. */
  readonly limit?: string | undefined;
  readonly windows: readonly unknown[];
}

export interface ChangedPlan {
  readonly plan: PlanView;
  readonly policies: readonly {
    readonly policy: string;
    readonly version: number;
    /** Undefined beyond the first few. */
    readonly diff: string | undefined;
    readonly rollout: RolloutView | undefined;
  }[];
}

export interface PlanOptions extends ExpectingOptions {
  /** Each policy that changes goes out in steps. */
  readonly rollout?: RolloutRequest | undefined;
}

/**
 * Plans are views of the stored policies: a change of one is a new version of every policy that it changes, all of them
 * in one generation or none. The actor must be permitted to change each of them.
 */
export interface PlanControl {
  /** In order of their names. */
  list(actor: Actor, query?: PageQuery): Promise<Listed<PlanSummary>>;
  get(actor: Actor, plan: string): Promise<PlanView>;
  /** Replaces all limits of the plan. */
  put(
    actor: Actor,
    plan: string,
    limits: readonly PlanLimitRequest[],
    options?: PlanOptions,
  ): Promise<Changed<ChangedPlan>>;
  /** Subjects keep the tier, and get what the limits say for all. */
  delete(actor: Actor, plan: string, options?: PlanOptions): Promise<Changed<ChangedPlan>>;
}
