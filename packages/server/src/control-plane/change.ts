import type { Problem } from "sluice";

/** The most characters of a reason for a change. */
export const maxWhyLength = 1_000;

/** Options of any change. */
export interface ChangeOptions {
  /** Answers as if the change were made, with every refusal that it would meet, and changes nothing. */
  readonly dryRun?: boolean | undefined;
  /** For the history. */
  readonly why?: string | undefined;
}

/** Options of a change to something that may exist already. */
export interface ExpectingOptions extends ChangeOptions {
  /** The version that the caller saw; 0: none. Absent: `version_conflict` if there is one. */
  readonly expected?: number | undefined;
}

export interface Changed<T> {
  readonly value: T;
  /** The generation that nodes will decide by; undefined in a dry run, or if nothing changed. */
  readonly generation: number | undefined;
  readonly dryRun: boolean;
  /** Things that are legal, but may surprise. */
  readonly warnings: readonly Problem[];
}

/** A page of a long list; `next` is `after` of the following page. */
export interface Listed<T> {
  readonly items: readonly T[];
  readonly next: string | undefined;
}

export interface PageQuery {
  readonly after?: string | undefined;
  /** 1 … 1 000; absent: 100. */
  readonly limit?: number | undefined;
}
