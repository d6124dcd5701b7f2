import type { DenialBody, DenialPageBody } from "@sluice/protocol/admin";
import type { AdminRequests, CallOptions } from "./admin-requests.ts";
import type { Listing } from "./listing.ts";

/** Which denials to list. */
export interface DenialFilter extends CallOptions {
  /** Denials at `fromMs` or later, and before `toMs`. Absent: the last 24 hours. */
  readonly fromMs?: number | undefined;
  readonly toMs?: number | undefined;
  readonly policy?: string | undefined;
  readonly limitName?: string | undefined;
  /** Requests with this value (`subject`) of this dimension; both or neither. */
  readonly dimension?: string | undefined;
  readonly subject?: string | undefined;
}

/** What was denied lately, and why. Under a flood of denials a record stands for several: `denials` says how many. */
export class AdminDenials {
  readonly #requests: AdminRequests;

  constructor(requests: AdminRequests) {
    this.#requests = requests;
  }

  /** Newest first. */
  list(filter: DenialFilter = {}): Listing<DenialBody> {
    const { query, options } = splitFilter(filter);
    return this.#requests.list("denials", query, options);
  }

  /** One page, with how many denials the records of all pages stand for. */
  page(filter: DenialFilter & { readonly limit?: number; readonly after?: string } = {}): Promise<DenialPageBody> {
    const { limit, after, ...rest } = filter;
    const { query, options } = splitFilter(rest);
    return this.#requests.ask("GET", "denials", { query: { ...query, limit, after }, options });
  }
}

function splitFilter({ fromMs, toMs, limitName, signal, timeoutMs, ...filter }: DenialFilter) {
  return {
    query: { ...filter, from_ms: fromMs, to_ms: toMs, limit_name: limitName },
    options: { signal, timeoutMs },
  };
}
