import type { PlanBody, PlanChangeBody, PlanSummaryBody, RolloutRequestBody } from "@sluice/protocol/admin";
import { type AdminRequests, type CallOptions, pathPart, type VersionedOptions } from "./admin-requests.ts";
import type { Listing } from "./listing.ts";

/** The windows of one limit for a plan, as in a policy file. What `get` returns under `limits` is such a list. */
export interface PlanLimitRequest {
  readonly policy: string;
  /** Absent: the only limit of the policy. */
  readonly limit?: string | undefined;
  readonly windows: readonly unknown[];
}

/** What a change of a plan takes. */
export interface PlanChangeOptions extends VersionedOptions {
  /** Each policy that changes goes out by steps. */
  readonly rollout?: RolloutRequestBody | undefined;
}

/** Tiers across all policies, each changed in one go. */
export class AdminPlans {
  readonly #requests: AdminRequests;

  constructor(requests: AdminRequests) {
    this.#requests = requests;
  }

  /** In order of their names. */
  list(options?: CallOptions): Listing<PlanSummaryBody> {
    return this.#requests.list("plans", {}, options);
  }

  get(plan: string, options?: CallOptions): Promise<PlanBody> {
    return this.#requests.ask("GET", planPath(plan), { options });
  }

  /** Replaces all limits of the plan, in every policy, in one generation. */
  put(
    plan: string,
    limits: readonly PlanLimitRequest[],
    { rollout, ...options }: PlanChangeOptions = {},
  ): Promise<PlanChangeBody> {
    return this.#requests.ask("PUT", planPath(plan), { body: { limits, rollout }, options });
  }

  /** Subjects keep the tier, and have what the limits say for everyone. */
  delete(plan: string, options: VersionedOptions = {}): Promise<PlanChangeBody> {
    return this.#requests.ask("DELETE", planPath(plan), { options });
  }
}

function planPath(plan: string): string {
  return `plans/${pathPart(plan)}`;
}
