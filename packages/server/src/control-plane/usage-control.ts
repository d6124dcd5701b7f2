import type { UsageDenials, UsageRow, UsageStep } from "@sluice/sql";
import type { Actor } from "../data-plane/access/actor.ts";
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

export interface UsageControl {
  /** By time, oldest first. */
  list(actor: Actor, request: UsageRequest): Promise<Listed<UsageView>>;
}
