import type {
  ChangeBody,
  DisabledPoliciesBody,
  DisabledPolicyBody,
  DisablingChangeBody,
  JsonObject,
  PolicyBody,
  PolicyChangeBody,
  PolicyDiffBody,
  PolicySummaryBody,
  PolicyValidationBody,
  RolloutRequestBody,
  VersionBody,
} from "@sluice/protocol/admin";
import type { ExplanationBody } from "@sluice/protocol/http";
import {
  type AdminRequests,
  type CallOptions,
  type ChangeOptions,
  pathPart,
  type VersionedOptions,
} from "./admin-requests.ts";
import type { Listing } from "./listing.ts";

/** What a change of a policy takes. */
export interface PolicyChangeOptions extends VersionedOptions {
  /** Goes out by steps, instead of to all subjects at once. */
  readonly rollout?: RolloutRequestBody | undefined;
}

/** A request to explain, as `check` of a limiter takes it. */
export interface ExplainRequest {
  readonly dimensions: Readonly<Record<string, string>>;
  /** Absent: the policy's, else 1. */
  readonly cost?: number | undefined;
  readonly domain?: string | undefined;
  /** Only these, by id. Absent: all that match. */
  readonly policies?: readonly string[] | undefined;
}

/** For how long a policy is disabled, and how. */
export interface DisableOptions extends ChangeOptions {
  readonly why: string;
  /** Absent: `allow`, which neither decides nor counts. `shadow`: it decides, counts and reports, and never denies. */
  readonly mode?: "allow" | "shadow" | undefined;
  readonly forMs?: number | undefined;
}

/** Which policies to summarize. */
export interface SummaryFilter extends CallOptions {
  readonly owner?: string | undefined;
  /** A part of the id or the owner, in any case. */
  readonly search?: string | undefined;
  /** This policy alone. */
  readonly id?: string | undefined;
}

/** The policies in the policy store. */
export class AdminPolicies {
  readonly #requests: AdminRequests;

  constructor(requests: AdminRequests) {
    this.#requests = requests;
  }

  /** In order of their ids; `owner`: only those of a team. */
  list({ owner, ...options }: CallOptions & { readonly owner?: string | undefined } = {}): Listing<PolicyBody> {
    return this.#requests.list("policies", { owner }, options);
  }

  /** With what they do, their last 24 hours, and how close they came to their limits. */
  summaries({ owner, search, id, ...options }: SummaryFilter = {}): Listing<PolicySummaryBody> {
    return this.#requests.list("policy-summaries", { owner, search, id }, options);
  }

  get(id: string, options?: CallOptions): Promise<PolicyBody> {
    return this.#requests.ask("GET", policyPath(id), { options });
  }

  /** Fails with `already_exists` or `version_conflict` if there is one with this id. `document` has the id. */
  create(
    document: JsonObject & { readonly id: string },
    { rollout, ...options }: PolicyChangeOptions = {},
  ): Promise<PolicyChangeBody> {
    return this.#requests.ask("POST", "policies", { body: { document, rollout }, options });
  }

  /** Creates or replaces a policy. `document` is what stands in a policy file, under `policies`. */
  put(id: string, document: JsonObject, { rollout, ...options }: PolicyChangeOptions = {}): Promise<PolicyChangeBody> {
    return this.#requests.ask("PUT", policyPath(id), { body: { document, rollout }, options });
  }

  /** Its versions stay, and `revert` brings it back. */
  delete(id: string, options: VersionedOptions = {}): Promise<ChangeBody> {
    return this.#requests.ask("DELETE", policyPath(id), { options });
  }

  /** What is wrong with a policy, and what may surprise, next to those in the store. Nothing is saved. */
  validate(document: JsonObject, options?: CallOptions): Promise<PolicyValidationBody> {
    return this.#requests.ask("POST", "policies/validate", { body: { document }, options });
  }

  /** How the server that answers would decide this request, and why. Charges nothing. */
  explain({ dimensions, cost, domain, policies }: ExplainRequest, options?: CallOptions): Promise<ExplanationBody> {
    return this.#requests.ask("POST", "explain", { body: { dimensions, cost, domain, policies }, options });
  }

  /** Newest first. */
  versions(id: string, options?: CallOptions): Listing<VersionBody> {
    return this.#requests.list(`${policyPath(id)}/versions`, {}, options);
  }

  version(id: string, version: number, options?: CallOptions): Promise<VersionBody> {
    return this.#requests.ask("GET", `${policyPath(id)}/versions/${version}`, { options });
  }

  /** What changed `from` a version (absent: the one before) `to` another (absent: the current one). */
  diff(
    id: string,
    {
      from,
      to,
      ...options
    }: CallOptions & { readonly from?: number | undefined; readonly to?: number | undefined } = {},
  ): Promise<PolicyDiffBody> {
    return this.#requests.ask("GET", `${policyPath(id)}/diff`, { query: { from, to }, options });
  }

  /** Policies that are disabled for a time, those of files included. */
  async disabled(options?: CallOptions): Promise<readonly DisabledPolicyBody[]> {
    const { items } = await this.#requests.ask<DisabledPoliciesBody>("GET", "disabled", { options });
    return items;
  }

  /** The policy limits nothing, on any node, for a time. `why` is required. `forMs` absent: an hour. */
  disable(id: string, { mode, forMs, ...options }: DisableOptions): Promise<DisablingChangeBody> {
    return this.#requests.ask("PUT", `${policyPath(id)}/disable`, { body: { mode, for_ms: forMs }, options });
  }

  /** The policy limits again. */
  enable(id: string, options: ChangeOptions = {}): Promise<DisablingChangeBody> {
    return this.#requests.ask("DELETE", `${policyPath(id)}/disable`, { options });
  }

  /** Makes a new version with what an earlier one said; also brings a deleted policy back. */
  revert(id: string, version: number, { rollout, ...options }: PolicyChangeOptions = {}): Promise<PolicyChangeBody> {
    return this.#requests.ask("POST", `${policyPath(id)}/revert`, { body: { version, rollout }, options });
  }
}

function policyPath(id: string): string {
  return `policies/${pathPart(id)}`;
}
