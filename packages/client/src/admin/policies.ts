import type {
  ChangeBody,
  JsonObject,
  PolicyBody,
  PolicyChangeBody,
  PolicyDiffBody,
  PolicyValidationBody,
  RolloutRequestBody,
  VersionBody,
} from "@sluice/protocol/admin";
import { type AdminRequests, type CallOptions, pathPart, type VersionedOptions } from "./admin-requests.ts";
import type { Listing } from "./listing.ts";

/** What a change of a policy takes. */
export interface PolicyChangeOptions extends VersionedOptions {
  /** Goes out by steps, instead of to all subjects at once. */
  readonly rollout?: RolloutRequestBody | undefined;
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

  /** Makes a new version with what an earlier one said; also brings a deleted policy back. */
  revert(id: string, version: number, { rollout, ...options }: PolicyChangeOptions = {}): Promise<PolicyChangeBody> {
    return this.#requests.ask("POST", `${policyPath(id)}/revert`, { body: { version, rollout }, options });
  }
}

function policyPath(id: string): string {
  return `policies/${pathPart(id)}`;
}
