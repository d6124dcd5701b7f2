import type { UsageCounts, UsageDenials, UsageRow, UsageStep } from "@sluice/sql";
import type { Actor } from "../data-plane/access/actor.ts";
import type { TailAnswer } from "../observe/usage-events/usage-tail.ts";
import type { Listed, PageQuery } from "./change.ts";

/** A period of usage, with its denials by reason and window. */
export interface UsageView extends UsageRow {
  readonly denials: readonly UsageDenials[];
}

export interface UsageRequest extends PageQuery {
  /** Absent: `hour`. */
  readonly step?: UsageStep | undefined;
  /** Absent: a day ago, until now. */
  readonly fromMs?: number | undefined;
  readonly toMs?: number | undefined;
  readonly policy?: string | undefined;
  /** The name or the dimensions of a limit. */
  readonly ofLimit?: string | undefined;
  /** Subjects of this dimension, or one of them. Absent: the totals. */
  readonly dimension?: string | undefined;
  readonly subject?: string | undefined;
  readonly by?: readonly ("policy" | "limit" | "subject")[] | undefined;
}

export interface UsageSumRequest {
  readonly fromMs: number;
  /** Absent: now. */
  readonly toMs?: number | undefined;
  readonly policies: readonly string[];
  /** The dimensions of a request. */
  readonly dimensions: Readonly<Record<string, string>>;
}

/** What was decided for a subject by a policy in a period. */
export interface UsageTotal extends UsageCounts {
  readonly policy: string;
  readonly dimension: string;
  readonly subject: string;
  /** The period in whole minutes, hours or days. */
  readonly fromMs: number;
  readonly toMs: number;
}

export interface UsageTailRequest {
  /** `next` of the previous answer. Absent: from now on. */
  readonly after?: string | undefined;
  /** How long to wait for an event. */
  readonly waitMs: number;
  readonly policy?: string | undefined;
  /** The customer or the subject of the limit, as events have it. */
  readonly subject?: string | undefined;
}

export interface UsageControl {
  /**
   * By policy, for each dimension of the request whose subjects this server tracks. Problems are named by the fields of
   * `GetUsageRequest`.
   */
  sum(actor: Actor, request: UsageSumRequest): Promise<readonly UsageTotal[]>;
  /** By time, oldest first. */
  list(actor: Actor, request: UsageRequest): Promise<Listed<UsageView>>;
  /** Usage events that this node makes now. Throws `overloaded` if too many requests wait. */
  tail(actor: Actor, request: UsageTailRequest): Promise<TailAnswer>;
}
