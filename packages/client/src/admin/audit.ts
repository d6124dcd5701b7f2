import type { AuditEntryBody } from "@sluice/protocol/admin";
import type { AdminRequests, CallOptions } from "./admin-requests.ts";
import type { Listing } from "./listing.ts";

/** Which entries of the audit to list. */
export interface AuditFilter extends CallOptions {
  readonly kind?: string | undefined;
  readonly target?: string | undefined;
  readonly actor?: string | undefined;
  readonly action?: string | undefined;
  readonly outcome?: string | undefined;
  readonly sinceMs?: number | undefined;
  readonly untilMs?: number | undefined;
}

/** Who changed what, or was refused. */
export class AdminAudit {
  readonly #requests: AdminRequests;

  constructor(requests: AdminRequests) {
    this.#requests = requests;
  }

  /** Newest first. */
  list({ sinceMs, untilMs, signal, timeoutMs, ...filter }: AuditFilter = {}): Listing<AuditEntryBody> {
    const query = { ...filter, since_ms: sinceMs, until_ms: untilMs };
    return this.#requests.list("audit", query, { signal, timeoutMs });
  }
}
