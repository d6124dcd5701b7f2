import type { DenialCount, DenialRecord } from "@sluice/sql";
import type { Actor } from "../data-plane/access/actor.ts";
import type { Listed, PageQuery } from "./change.ts";

export interface DenialRequest extends PageQuery {
  /** Absent: a day ago, until now. */
  readonly fromMs?: number | undefined;
  readonly toMs?: number | undefined;
  readonly policy?: string | undefined;
  /** The name or the dimensions of a limit. */
  readonly ofLimit?: string | undefined;
  /** Requests with this value of this dimension. */
  readonly dimension?: string | undefined;
  readonly subject?: string | undefined;
}

export interface ListedDenials extends Listed<DenialRecord> {
  /** How many denials the records of all pages stand for. */
  readonly denials: DenialCount["denials"];
  /** Denials of the same time and policies that were recorded for several subjects together. */
  readonly mixed: DenialCount["mixed"];
}

export interface DenialControl {
  /** Newest first. */
  list(actor: Actor, request: DenialRequest): Promise<ListedDenials>;
}
