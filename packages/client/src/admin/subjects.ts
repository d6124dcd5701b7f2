import type {
  KeptSubjectBody,
  KnownSubjectBody,
  SubjectBody,
  SubjectChangeBody,
  SubjectDeletionBody,
  SubjectResetBody,
  SubjectUsageBody,
} from "@sluice/protocol/admin";
import {
  type AdminRequests,
  type CallOptions,
  type ChangeOptions,
  type OverwriteOptions,
  pathPart,
} from "./admin-requests.ts";
import type { Listing } from "./listing.ts";

/** Who is being limited: `{ dimension: "user", value: "u1" }`. */
export interface AdminSubject {
  readonly dimension: string;
  readonly value: string;
}

/** Which limit of which policy a subject has in another form. */
export interface WhichLimit {
  readonly policy: string;
  /** Absent: every limit of the policy that counts by this dimension. */
  readonly limit?: string | undefined;
}

/** Other windows for one subject, as in a policy file: `["100/s burst 200"]`. */
export interface SubjectLimitRequest extends WhichLimit {
  readonly windows: readonly unknown[];
}

/** The same, until it ends: at a moment, or so long from now. */
export type OverrideRequest = SubjectLimitRequest & ({ readonly untilMs: number } | { readonly forMs: number });

/** How long a subject is kept out, and by which policies; by every one if none is named. */
export type BlockRequest = { readonly policies?: readonly string[] | undefined } & (
  | { readonly untilMs: number }
  | { readonly forMs: number }
);

export interface SubjectResetRequest {
  /** Only this policy's counters. */
  readonly policy?: string | undefined;
  /** Values of further dimensions, for limits that count by several. */
  readonly alsoBy?: Readonly<Record<string, string>> | undefined;
  /** Only those counters that a request like this one is counted in. */
  readonly dimensions?: Readonly<Record<string, string>> | undefined;
}

/** Tiers, custom limits, overrides and counters of single subjects. */
export class AdminSubjects {
  readonly #requests: AdminRequests;

  constructor(requests: AdminRequests) {
    this.#requests = requests;
  }

  /** Those of a dimension that have a tier or custom limits; `tier`: only those that have this one. */
  list(
    dimension: string,
    { tier, ...options }: CallOptions & { readonly tier?: string | undefined } = {},
  ): Listing<KeptSubjectBody> {
    return this.#requests.list(`subjects/${pathPart(dimension)}`, { tier }, options);
  }

  /** Those that begin with a text, and are configured, have a usage history or were denied lately. */
  find(
    prefix: string,
    { dimension, ...options }: CallOptions & { readonly dimension?: string | undefined } = {},
  ): Listing<KnownSubjectBody> {
    return this.#requests.list("subjects", { prefix, dimension }, options);
  }

  /** Its limits, where each comes from, and how its counters stand. Version 0: nothing is stored about it. */
  get(subject: AdminSubject, options?: CallOptions): Promise<SubjectBody> {
    return this.#requests.ask("GET", subjectPath(subject), { options });
  }

  /** How its counters stand. */
  usage(subject: AdminSubject, options?: CallOptions): Promise<SubjectUsageBody> {
    return this.#requests.ask("GET", `${subjectPath(subject)}/usage`, { options });
  }

  /** Deletes its tier, its custom limits, its overrides and its block. */
  delete(subject: AdminSubject, options: OverwriteOptions = {}): Promise<SubjectDeletionBody> {
    return this.#requests.ask("DELETE", subjectPath(subject), { options });
  }

  setTier(subject: AdminSubject, tier: string, options: OverwriteOptions = {}): Promise<SubjectChangeBody> {
    return this.#requests.ask("PUT", `${subjectPath(subject)}/tier`, { body: { tier }, options });
  }

  deleteTier(subject: AdminSubject, options: OverwriteOptions = {}): Promise<SubjectChangeBody> {
    return this.#requests.ask("DELETE", `${subjectPath(subject)}/tier`, { options });
  }

  /** A custom limit, with no end. */
  setLimit(
    subject: AdminSubject,
    { policy, limit, windows }: SubjectLimitRequest,
    options: OverwriteOptions = {},
  ): Promise<SubjectChangeBody> {
    return this.#requests.ask("PUT", `${subjectPath(subject)}/limits`, { body: { policy, limit, windows }, options });
  }

  deleteLimit(
    subject: AdminSubject,
    { policy, limit }: WhichLimit,
    options: OverwriteOptions = {},
  ): Promise<SubjectChangeBody> {
    return this.#requests.ask("DELETE", `${subjectPath(subject)}/limits`, { query: { policy, limit }, options });
  }

  /** Another limit for a while; it ends automatically. */
  setOverride(
    subject: AdminSubject,
    override: OverrideRequest,
    options: OverwriteOptions = {},
  ): Promise<SubjectChangeBody> {
    const { policy, limit, windows } = override;
    const end = "untilMs" in override ? { until_ms: override.untilMs } : { for_ms: override.forMs };
    return this.#requests.ask("PUT", `${subjectPath(subject)}/override`, {
      body: { policy, limit, windows, ...end },
      options,
    });
  }

  deleteOverride(
    subject: AdminSubject,
    { policy, limit }: WhichLimit,
    options: OverwriteOptions = {},
  ): Promise<SubjectChangeBody> {
    return this.#requests.ask("DELETE", `${subjectPath(subject)}/override`, { query: { policy, limit }, options });
  }

  /** Keeps it out until the block ends: it is denied, by every policy or by some. `why` is required. */
  block(
    subject: AdminSubject,
    block: BlockRequest,
    options: OverwriteOptions & { readonly why: string },
  ): Promise<SubjectChangeBody> {
    const end = "untilMs" in block ? { until_ms: block.untilMs } : { for_ms: block.forMs };
    const body = { policies: block.policies, ...end };
    return this.#requests.ask("PUT", `${subjectPath(subject)}/block`, { body, options });
  }

  unblock(subject: AdminSubject, options: OverwriteOptions = {}): Promise<SubjectChangeBody> {
    return this.#requests.ask("DELETE", `${subjectPath(subject)}/block`, { options });
  }

  /** Resets its counters, on every node, and lifts blocks by `block_for`. */
  reset(
    subject: AdminSubject,
    { policy, alsoBy, dimensions }: SubjectResetRequest = {},
    options: ChangeOptions = {},
  ): Promise<SubjectResetBody> {
    return this.#requests.ask("POST", `${subjectPath(subject)}/reset`, {
      body: { policy, also_by: alsoBy, dimensions },
      options,
    });
  }
}

function subjectPath({ dimension, value }: AdminSubject): string {
  return `subjects/${pathPart(dimension)}/${pathPart(value)}`;
}
