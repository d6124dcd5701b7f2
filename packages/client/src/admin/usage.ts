import type { TopSubjectsBody, UsageEventsBody, UsagePeriodBody } from "@sluice/protocol/admin";
import type { AdminRequests, CallOptions } from "./admin-requests.ts";
import type { Listing } from "./listing.ts";

/** Which usage to list. */
export interface UsageFilter extends CallOptions {
  /** The length of a period. Absent: `hour`. */
  readonly step?: "minute" | "hour" | "day" | undefined;
  /** Periods that begin at `fromMs` or later, and before `toMs`. Absent: the last 24 hours. */
  readonly fromMs?: number | undefined;
  readonly toMs?: number | undefined;
  readonly policy?: string | undefined;
  readonly limitName?: string | undefined;
  /** Subjects of this dimension, or one of them. Absent: the totals. */
  readonly dimension?: string | undefined;
  readonly subject?: string | undefined;
  /** What to list separately. */
  readonly groupBy?: readonly ("policy" | "limit" | "subject")[] | undefined;
}

/** Which usage events to wait for. */
export interface UsageEventFilter extends CallOptions {
  /** `next` of the previous answer. Absent: only events from now on. */
  readonly after?: string | undefined;
  /** How long the server waits for an event, at most 20 000; less than `timeoutMs`. Absent: 0. */
  readonly waitMs?: number | undefined;
  readonly policy?: string | undefined;
  /** The customer or the subject of the limit, as events have it. */
  readonly subject?: string | undefined;
}

/** Which subjects to list. */
export interface TopSubjectsFilter extends CallOptions {
  readonly dimension: string;
  /** Only their usage of this policy. */
  readonly policy?: string | undefined;
  /** Absent: the last 24 hours. */
  readonly fromMs?: number | undefined;
  readonly toMs?: number | undefined;
  /** Absent: `decided`. */
  readonly by?: TopSubjectsBody["by"] | undefined;
  /** 1 to 100. Absent: 10. */
  readonly count?: number | undefined;
}

/** How much policies and subjects were used. */
export class AdminUsage {
  readonly #requests: AdminRequests;

  constructor(requests: AdminRequests) {
    this.#requests = requests;
  }

  /** Oldest first. Periods without decisions are left out. */
  list({ fromMs, toMs, limitName, groupBy, signal, timeoutMs, ...filter }: UsageFilter = {}): Listing<UsagePeriodBody> {
    const group_by = groupBy === undefined || groupBy.length === 0 ? undefined : groupBy.join(",");
    const query = { ...filter, from_ms: fromMs, to_ms: toMs, limit_name: limitName, group_by };
    return this.#requests.list("usage", query, { signal, timeoutMs });
  }

  /** The subjects of a dimension that used most in a period. */
  top({ fromMs, toMs, signal, timeoutMs, ...filter }: TopSubjectsFilter): Promise<TopSubjectsBody> {
    const query = { ...filter, from_ms: fromMs, to_ms: toMs };
    return this.#requests.ask("GET", "usage/top", { query, options: { signal, timeoutMs } });
  }

  /**
   * The events of the server that answers, since `after`. Call it again with `next`: the server makes and keeps events only for
   * those who asked within the last 30 seconds.
   */
  events({ waitMs, signal, timeoutMs, ...filter }: UsageEventFilter = {}): Promise<UsageEventsBody> {
    return this.#requests.ask("GET", "usage/events", {
      query: { ...filter, wait_ms: waitMs },
      options: { signal, timeoutMs },
    });
  }
}
