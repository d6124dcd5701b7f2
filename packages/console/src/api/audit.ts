import type { AuditEntryBody, PageBody } from "@sluice/protocol/admin";
import { ask } from "./ask.ts";

/** Who changed what, or was refused, newest first. */
export function audit(
  query: {
    readonly kind?: string | undefined;
    readonly target?: string | undefined;
    readonly actor?: string | undefined;
    readonly outcome?: "done" | "refused" | undefined;
    readonly limit: number;
    readonly after?: string | undefined;
  },
  signal?: AbortSignal,
): Promise<PageBody<AuditEntryBody>> {
  return ask("GET", "audit", { query, signal });
}
