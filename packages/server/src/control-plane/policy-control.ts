import type { RolloutRecord } from "@sluice/sql";
import type { CheckRequest, Explanation, Problem } from "sluice";
import type { Actor } from "../data-plane/access/actor.ts";
import type { Changed, ExpectingOptions, Listed, PageQuery } from "./change.ts";
import type { DisabledView } from "./disabling-control.ts";
import type { RolloutRequest, RolloutView } from "./rollout-control.ts";

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
  /** Set while a new version is being rolled out. */
  readonly rollout: RolloutView | undefined;
  /** Set while the policy is disabled. */
  readonly disabled: DisabledView | undefined;
  /** Set if a policy file has the same id and files win: this policy is then not in force. */
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
  /** The rollout of this version; undefined: it applied to all subjects at once. */
  readonly rollout: Pick<RolloutRecord, "id" | "state" | "shadow"> | undefined;
}

export interface PolicyPutOptions extends ExpectingOptions {
  readonly rollout?: RolloutRequest | undefined;
  /**
   * Scope, value, endpoint and tier of a policy that is written as a rule: `already_exists` if another policy has the
   * same. Absent: unchanged.
   */
  readonly ruleKey?: string | undefined;
}

export interface PolicyControl {
  list(actor: Actor, query?: PageQuery & { readonly owner?: string | undefined }): Promise<Listed<StoredPolicy>>;
  get(actor: Actor, id: string): Promise<StoredPolicy>;
  /**
   * Creates or replaces. With `rollout` the new version is rolled out in steps, otherwise it applies to all subjects at
   * once. Refused while another version of the policy is being rolled out.
   */
  put(actor: Actor, id: string, document: PolicyDocument, options?: PolicyPutOptions): Promise<Changed<StoredPolicy>>;
  delete(actor: Actor, id: string, options?: ExpectingOptions): Promise<Changed<undefined>>;
  versions(actor: Actor, id: string, query?: PageQuery): Promise<Listed<StoredVersion>>;
  version(actor: Actor, id: string, version: number): Promise<StoredVersion>;
  /** The changes from one version to another. Absent: from the previous one, to the current one. */
  diff(actor: Actor, id: string, from?: number, to?: number): Promise<PolicyDiff>;
  /** Creates a new version with the content of an earlier one, which also restores a deleted policy. */
  revert(
    actor: Actor,
    id: string,
    version: number,
    options?: ExpectingOptions & { readonly rollout?: RolloutRequest | undefined },
  ): Promise<Changed<StoredPolicy>>;
  /** All problems of a document in the context of the other policies, and all warnings. */
  validate(
    actor: Actor,
    document: PolicyDocument,
  ): Promise<{ problems: readonly Problem[]; warnings: readonly Problem[] }>;
  /** How the node that answers would decide a request now. Charges nothing, and does not need the policy store. */
  explain(actor: Actor, request: CheckRequest): Promise<Explanation>;
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
