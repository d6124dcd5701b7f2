import type { AuditEntryBody } from "@sluice/protocol/admin";
import { useQuery } from "@tanstack/react-query";
import type { ReactNode } from "react";
import { admin } from "../../api/admin.ts";
import { Badge } from "../../ui/badge.tsx";
import { Card } from "../../ui/card.tsx";
import { DataTable, type TableColumn } from "../../ui/data-table.tsx";
import { EmptyState } from "../../ui/empty-state.tsx";
import { ErrorNotice } from "../../ui/error-notice.tsx";
import { ExportMenu } from "../../ui/export-menu.tsx";
import { RelativeTime } from "../../ui/relative-time.tsx";
import { SkeletonRows } from "../../ui/skeleton.tsx";

const columns: readonly TableColumn<AuditEntryBody>[] = [
  {
    id: "at",
    title: "When",
    width: "8rem",
    sortBy: ({ at_ms: atMs }) => atMs,
    cell: ({ at_ms: atMs }) => <RelativeTime ms={atMs} />,
  },
  {
    id: "actor",
    title: "Who",
    width: "12rem",
    sortBy: ({ actor }) => actor,
    cell: ({ actor, role }) => `${actor} (${role})`,
  },
  {
    id: "action",
    title: "What",
    width: "14rem",
    sortBy: ({ action }) => action,
    cell: ({ action, outcome }) => (
      <span className="flex items-center gap-2">
        <code className="font-mono text-xs">{action}</code>
        {outcome === "refused" && <Badge tone="denied">Refused</Badge>}
      </span>
    ),
  },
  { id: "why", title: "Why", cell: ({ why }) => why || <span className="text-ink-faint">no reason given</span> },
  { id: "generation", title: "Generation", right: true, width: "7rem", cell: ({ generation }) => generation ?? "–" },
];

/** Every change of the policy, and every attempt that was refused, for as long as the audit is kept. */
export function AuditTab({ id }: { readonly id: string }): ReactNode {
  const { data, error, refetch } = useQuery({
    queryKey: ["audit", "policy", id],
    queryFn: ({ signal }) => admin.audit({ kind: "policy", target: id, limit: 500 }, signal),
  });
  if (error !== null && data === undefined)
    return <ErrorNotice error={error} onRetry={() => void refetch()} what="The audit cannot be shown" />;
  if (data === undefined) return <SkeletonRows />;
  return (
    <Card
      aside={<ExportMenu columns={csv} name={`audit-${id}`} rows={data.items} />}
      flush
      title="Changes and refused attempts"
    >
      <DataTable
        columns={columns}
        empty={
          <EmptyState icon="history" title="Nothing in the last 90 days">
            The audit keeps entries for 90 days. Versions are kept forever.
          </EmptyState>
        }
        label="Audit of the policy"
        rowKey={(entry) => entry.id}
        rows={data.items}
      />
    </Card>
  );
}

const csv = {
  at: ({ at_ms: atMs }: AuditEntryBody) => new Date(atMs).toISOString(),
  actor: ({ actor }: AuditEntryBody) => actor,
  role: ({ role }: AuditEntryBody) => role,
  action: ({ action }: AuditEntryBody) => action,
  outcome: ({ outcome }: AuditEntryBody) => outcome,
  why: ({ why }: AuditEntryBody) => why,
  generation: ({ generation }: AuditEntryBody) => generation,
};
