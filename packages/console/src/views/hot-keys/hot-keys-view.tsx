import type { HotKeyBody, HotKeysBody } from "@sluice/protocol/admin";
import { useQuery } from "@tanstack/react-query";
import { getRouteApi } from "@tanstack/react-router";
import type { ReactNode } from "react";
import { hotKeys } from "../../api/hot-keys.ts";
import { nodesQuery } from "../../api/queries.ts";
import { formatNoun, formatRate, formatShare } from "../../format/numbers.ts";
import { formatDuration } from "../../format/times.ts";
import { Card } from "../../ui/card.tsx";
import { DataTable, type TableColumn } from "../../ui/data-table.tsx";
import { EmptyState } from "../../ui/empty-state.tsx";
import { ErrorNotice } from "../../ui/error-notice.tsx";
import { ExportMenu } from "../../ui/export-menu.tsx";
import { Meter } from "../../ui/meter.tsx";
import { Page } from "../../ui/page.tsx";
import { PolicyLink } from "../../ui/policy-link.tsx";
import { Segmented } from "../../ui/segmented.tsx";
import { Select } from "../../ui/select.tsx";
import { SkeletonRows } from "../../ui/skeleton.tsx";
import { SubjectLink } from "../../ui/subject-link.tsx";
import type { HotKeyOrder } from "./hot-keys-search.ts";
import { LeasesCard } from "./leases-card.tsx";

const route = getRouteApi("/shell/hot-keys");

interface HotKeyRow extends HotKeyBody {
  readonly share: number;
}

const columns: readonly TableColumn<HotKeyRow>[] = [
  { id: "policy", title: "Policy", cell: ({ policy }) => <PolicyLink id={policy} />, sortBy: ({ policy }) => policy },
  { id: "scope", title: "Limit", cell: ({ scope }) => scope },
  {
    id: "subject",
    title: "Subject",
    cell: ({ scope, subject }) =>
      hasPage(scope, subject) ? (
        <SubjectLink dimension={scope} value={subject} />
      ) : (
        <span className="font-mono text-xs">{subject}</span>
      ),
    sortBy: ({ subject }) => subject,
  },
  {
    id: "rate",
    title: "Per second",
    right: true,
    cell: ({ per_second, error_per_second }) => (
      <span title={error_per_second === 0 ? "Exact" : `Too high by at most ${formatRate(error_per_second)}`}>
        {error_per_second > 0 && "~"}
        {formatRate(per_second)}
      </span>
    ),
    sortBy: ({ per_second }) => per_second,
  },
  {
    id: "denied",
    title: "Denied",
    right: true,
    cell: ({ denied_per_second }) => formatRate(denied_per_second),
    sortBy: ({ denied_per_second }) => denied_per_second,
  },
  {
    id: "share",
    title: "Share of all",
    cell: ({ share, policy, subject }) => (
      <span className="flex items-center gap-3">
        <span className="w-24">
          <Meter label={`Share of ${policy} ${subject}`} share={share} tone="accent" />
        </span>
        {formatShare(share)}
      </span>
    ),
    sortBy: ({ share }) => share,
  },
  { id: "nodes", title: "Nodes", right: true, width: "5rem", cell: ({ nodes }) => nodes, sortBy: ({ nodes }) => nodes },
];

/** A limit is named after its dimensions unless it has a name. Only a limit by one dimension has a subject with a page. */
function hasPage(scope: string, subject: string): boolean {
  return /^(tenant|user|ip|api_key|account|org)$/.test(scope) && !subject.endsWith("…");
}

const exported = {
  policy: ({ policy }: HotKeyRow) => policy,
  limit: ({ scope }: HotKeyRow) => scope,
  subject: ({ subject }: HotKeyRow) => subject,
  per_second: ({ per_second }: HotKeyRow) => per_second,
  denied_per_second: ({ denied_per_second }: HotKeyRow) => denied_per_second,
  error_per_second: ({ error_per_second }: HotKeyRow) => error_per_second,
};

/** The busiest and the most denied counters, and what is decided by leases. */
export default function HotKeysView(): ReactNode {
  const { by = "rate", node } = route.useSearch();
  const navigate = route.useNavigate();
  const nodes = useQuery(nodesQuery);
  const { data, error, isLoading, refetch } = useQuery({
    queryKey: ["hot-keys", by, node],
    queryFn: ({ signal }) => hotKeys({ by, count: 100, node }, signal),
    refetchInterval: 3_000,
  });
  const rows = data === undefined ? [] : rowsOf(data);
  const names = nodes.data?.nodes.filter(({ alive }) => alive).map(({ name }) => name) ?? [];
  return (
    <Page
      about="The counters that are checked or denied most, by the last seconds of all nodes. Rates marked with ~ are upper bounds."
      actions={<ExportMenu columns={exported} name="hot-keys" rows={rows} />}
      title="Hot keys and leases"
    >
      <div className="flex flex-wrap items-end gap-3">
        <Segmented
          label="Order"
          onChange={(next: HotKeyOrder) =>
            void navigate({ search: (old) => ({ ...old, by: next === "rate" ? undefined : next }), replace: true })
          }
          options={[
            { value: "rate", label: "Busiest" },
            { value: "denials", label: "Most denied" },
          ]}
          value={by}
        />
        <Select
          className="w-48"
          label="Node"
          onChange={(next) =>
            void navigate({ search: (old) => ({ ...old, node: next === "" ? undefined : next }), replace: true })
          }
          options={[
            { value: "", label: "all nodes" },
            ...[...new Set([...names, ...(node === undefined ? [] : [node])])].map((value) => ({
              value,
              label: value,
            })),
          ]}
          value={node ?? ""}
        />
      </div>
      {error !== null && <ErrorNotice error={error} onRetry={() => void refetch()} what="Hot keys cannot be shown" />}
      <Card aside={data !== undefined && <Sources data={data} />} flush title="Counters">
        {isLoading && <SkeletonRows />}
        {data !== undefined && (
          <DataTable
            columns={columns}
            empty={
              <EmptyState icon="hot" title="No counter is busy">
                {by === "denials"
                  ? "Nothing was denied in the last seconds."
                  : "Nothing was decided in the last seconds. Send a check, and it appears here."}
              </EmptyState>
            }
            label="Hot keys"
            rowKey={({ policy, scope, subject }) => JSON.stringify([policy, scope, subject])}
            rows={rows}
          />
        )}
      </Card>
      <LeasesCard />
    </Page>
  );
}

function rowsOf({ items, total, by }: HotKeysBody): readonly HotKeyRow[] {
  const all = by === "rate" ? total.per_second : total.denied_per_second;
  return items.map((item) => {
    const own = by === "rate" ? item.per_second : item.denied_per_second;
    return { ...item, share: all <= 0 ? 0 : Math.min(1, own / all) };
  });
}

function Sources({ data: { nodes, total } }: { readonly data: HotKeysBody }): ReactNode {
  return (
    <>
      {formatRate(total.per_second)} a second in all, reported by {formatNoun(nodes.reported, "node")}
      {nodes.silent !== undefined && nodes.silent > 0 && `, ${nodes.silent} silent`}, {formatDuration(nodes.oldest_ms)}{" "}
      old at most
    </>
  );
}
