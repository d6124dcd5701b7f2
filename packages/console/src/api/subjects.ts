import type {
  KnownSubjectBody,
  PageBody,
  SubjectBody,
  SubjectChangeBody,
  SubjectDeletionBody,
  SubjectResetBody,
} from "@sluice/protocol/admin";
import type { ChangeOptions } from "./admin.ts";
import { ask, part } from "./ask.ts";

/** Who is being limited. */
export interface SubjectName {
  readonly dimension: string;
  readonly value: string;
}

export interface OverrideBody {
  readonly policy: string;
  readonly limit?: string | undefined;
  readonly windows: readonly unknown[];
  readonly until_ms: number;
}

const pathOf = ({ dimension, value }: SubjectName) => `subjects/${part(dimension)}/${part(value)}`;

/** Tier, limits, overrides and counters of one subject. */
export const subjects = {
  /** Those whose value begins like this, by dimension and value. */
  find: (
    query: {
      readonly prefix: string;
      readonly dimension?: string | undefined;
      readonly limit: number;
      readonly after?: string | undefined;
    },
    signal?: AbortSignal,
  ) => ask<PageBody<KnownSubjectBody>>("GET", "subjects", { query, signal }),
  get: (name: SubjectName, signal?: AbortSignal) => ask<SubjectBody>("GET", pathOf(name), { signal }),
  setTier: (name: SubjectName, tier: string, options: ChangeOptions) =>
    ask<SubjectChangeBody>("PUT", `${pathOf(name)}/tier`, { body: { tier }, ...options }),
  deleteTier: (name: SubjectName, options: ChangeOptions) =>
    ask<SubjectChangeBody>("DELETE", `${pathOf(name)}/tier`, options),
  setOverride: (name: SubjectName, body: OverrideBody, options: ChangeOptions) =>
    ask<SubjectChangeBody>("PUT", `${pathOf(name)}/override`, { body, ...options }),
  deleteOverride: (
    name: SubjectName,
    { policy, limit }: { readonly policy: string; readonly limit?: string | undefined },
    options: ChangeOptions,
  ) => ask<SubjectChangeBody>("DELETE", `${pathOf(name)}/override`, { query: { policy, limit }, ...options }),
  reset: (name: SubjectName, policy: string | undefined, options: ChangeOptions) =>
    ask<SubjectResetBody>("POST", `${pathOf(name)}/reset`, { body: { policy }, ...options }),
  delete: (name: SubjectName, options: ChangeOptions) => ask<SubjectDeletionBody>("DELETE", pathOf(name), options),
  block: (name: SubjectName, body: { readonly until_ms: number }, options: ChangeOptions) =>
    ask<SubjectChangeBody>("PUT", `${pathOf(name)}/block`, { body, ...options }),
  unblock: (name: SubjectName, options: ChangeOptions) =>
    ask<SubjectChangeBody>("DELETE", `${pathOf(name)}/block`, options),
} as const;
