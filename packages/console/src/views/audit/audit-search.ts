import { oneOf, type Search, textParam } from "../../url/search-params.ts";

export const auditOutcomes = ["all", "done", "refused"] as const;
export type AuditOutcome = (typeof auditOutcomes)[number];

export interface AuditSearch {
  readonly kind?: string | undefined;
  readonly target?: string | undefined;
  readonly actor?: string | undefined;
  readonly outcome?: AuditOutcome | undefined;
}

export function parseAuditSearch({ kind, target, actor, outcome }: Search): AuditSearch {
  const only = oneOf(outcome, auditOutcomes, "all");
  return {
    kind: textParam(kind, 64),
    target: textParam(target, 512),
    actor: textParam(actor),
    outcome: only === "all" ? undefined : only,
  };
}
