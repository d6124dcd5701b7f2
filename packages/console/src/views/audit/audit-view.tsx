import type { AuditEntryBody } from "@sluice/protocol/admin";
import { keepPreviousData, useInfiniteQuery } from "@tanstack/react-query";
import { getRouteApi } from "@tanstack/react-router";
import { type ReactNode, useState } from "react";
import { audit } from "../../api/audit.ts";
import { formatNoun } from "../../format/numbers.ts";
import { Badge } from "../../ui/badge.tsx";
import { Button } from "../../ui/button.tsx";
import { Card } from "../../ui/card.tsx";
import { DataTable, type TableColumn } from "../../ui/data-table.tsx";
import { EmptyState } from "../../ui/empty-state.tsx";
import { ErrorNotice } from "../../ui/error-notice.tsx";
import { ExportMenu } from "../../ui/export-menu.tsx";
import { Page } from "../../ui/page.tsx";
import { RelativeTime } from "../../ui/relative-time.tsx";
import { Segmented } from "../../ui/segmented.tsx";
import { Select } from "../../ui/select.tsx";
import { SkeletonRows } from "../../ui/skeleton.tsx";
import { SubmittedField } from "../../ui/submitted-field.tsx";
import { AuditDialog } from "./audit-dialog.tsx";
import { type AuditOutcome, auditOutcomes } from "./audit-search.ts";

const route = getRouteApi("/shell/audit");
const pageSize = 100;
const kinds = [
  "policy",
  "plan",
  "rollout",
  "subject",
  "token",
  "kill_switch",
  "configuration",
  "recording",
  "audit",
  "node",
  "usage",
  "denial",
  "server",
];

const columns: readonly TableColumn<AuditEntryBody>[] = [
  { id: "at", title: "When", width: "7rem", cell: ({ at_ms }) => <RelativeTime ms={at_ms} /> },
  {
    id: "actor",
    title: "Who",
    cell: ({ actor, role }) => (
      <>
        {actor} <span className="text-xs text-ink-faint">{role}</span>
      </>
    ),
  },
  { id: "action", title: "What", cell: ({ action }) => <span className="font-mono text-xs">{action}</span> },
  { id: "target", title: "To what", cell: ({ target }) => target || "–" },
  {
    id: "outcome",
    title: "",
    width: "6rem",
    cell: ({ outcome }) => outcome === "refused" && <Badge tone="denied">refused</Badge>,
  },
  { id: "why", title: "Why", width: "30%", cell: ({ why }) => why || "–" },
];

const exported = {
  at: ({ at_ms }: AuditEntryBody) => new Date(at_ms).toISOString(),
  actor: ({ actor }: AuditEntryBody) => actor,
  role: ({ role }: AuditEntryBody) => role,
  from: ({ from }: AuditEntryBody) => from,
  action: ({ action }: AuditEntryBody) => action,
  target: ({ target }: AuditEntryBody) => target,
  outcome: ({ outcome }: AuditEntryBody) => outcome,
  why: ({ why }: AuditEntryBody) => why,
  before: ({ before }: AuditEntryBody) => (before === undefined ? undefined : JSON.stringify(before)),
  after: ({ after }: AuditEntryBody) => (after === undefined ? undefined : JSON.stringify(after)),
  generation: ({ generation }: AuditEntryBody) => generation,
};

/** Every change and every refused attempt, with what was there before and after. */
export default function AuditView(): ReactNode {
  const { kind, target, actor, outcome = "all" } = route.useSearch();
  const navigate = route.useNavigate();
  const [opened, setOpened] = useState<AuditEntryBody>();
  const query = { kind, target, actor, outcome: outcome === "all" ? undefined : outcome };
  const { data, error, isLoading, hasNextPage, fetchNextPage, isFetchingNextPage, refetch } = useInfiniteQuery({
    queryKey: ["audit", "list", query],
    queryFn: ({ signal, pageParam }) => audit({ ...query, limit: pageSize, after: pageParam }, signal),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: ({ next }) => next,
    placeholderData: keepPreviousData,
  });
  const rows = data?.pages.flatMap(({ items }) => items) ?? [];
  const change = (next: object) => void navigate({ search: (old) => ({ ...old, ...next }), replace: true });
  return (
    <Page
      about="Every change and every refused attempt, newest first, for 90 days."
      actions={<ExportMenu columns={exported} name="audit" rows={rows} />}
      title="Audit"
    >
      <div className="flex flex-wrap items-end gap-3">
        <Select
          className="w-44"
          label="Kind"
          onChange={(next) => change({ kind: next === "" ? undefined : next })}
          options={[
            { value: "", label: "all kinds" },
            ...kinds.map((value) => ({ value, label: value.replace("_", " ") })),
          ]}
          value={kind ?? ""}
        />
        <SubmittedField
          label="Target"
          onSubmit={(value) => change({ target: value })}
          placeholder="tenant:acme"
          value={target}
        />
        <SubmittedField label="Who" onSubmit={(value) => change({ actor: value })} value={actor} />
        <div className="ml-auto">
          <Segmented
            label="Outcome"
            onChange={(next: AuditOutcome) => change({ outcome: next === "all" ? undefined : next })}
            options={auditOutcomes.map((value) => ({
              value,
              label: value === "all" ? "All" : value === "done" ? "Done" : "Refused",
            }))}
            value={outcome}
          />
        </div>
      </div>
      {error !== null && <ErrorNotice error={error} onRetry={() => void refetch()} what="The audit cannot be shown" />}
      <Card
        aside={data !== undefined && `${formatNoun(rows.length, "entry", "entries")}${hasNextPage ? " or more" : ""}`}
        flush
        title="Entries"
      >
        {isLoading && <SkeletonRows />}
        {data !== undefined && (
          <DataTable
            columns={columns}
            empty={
              <EmptyState icon="history" title="No entry matches">
                Clear a filter. A change appears here as soon as it is stored.
              </EmptyState>
            }
            label="Audit"
            onOpen={setOpened}
            rowKey={({ id, target: of }) => `${id} ${of}`}
            rows={rows}
          />
        )}
        {hasNextPage && (
          <div className="px-4 py-2">
            <Button busy={isFetchingNextPage} onClick={() => void fetchNextPage()} small>
              Show more
            </Button>
          </div>
        )}
      </Card>
      <AuditDialog entry={opened} onClose={() => setOpened(undefined)} />
    </Page>
  );
}
