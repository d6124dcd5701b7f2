import type { DenialBody } from "@sluice/protocol/admin";
import { useQuery } from "@tanstack/react-query";
import { getRouteApi } from "@tanstack/react-router";
import type { ReactNode } from "react";
import { admin } from "../../api/admin.ts";
import { denialColumns, denialKey, requestOf } from "../../decision/denial-columns.tsx";
import { renderPairs } from "../../decision/parse-request.ts";
import { formatCount, formatNoun } from "../../format/numbers.ts";
import { Button } from "../../ui/button.tsx";
import { Card } from "../../ui/card.tsx";
import { DataTable } from "../../ui/data-table.tsx";
import { EmptyState } from "../../ui/empty-state.tsx";
import { ErrorNotice } from "../../ui/error-notice.tsx";
import { ExportMenu } from "../../ui/export-menu.tsx";
import { Page } from "../../ui/page.tsx";
import { SkeletonRows } from "../../ui/skeleton.tsx";
import { SubmittedField } from "../../ui/submitted-field.tsx";
import { TimeRangePicker } from "../../ui/time-range-picker.tsx";
import { boundsOf, type TimeRange } from "../../url/time-range.ts";

const route = getRouteApi("/shell/denials");
const pageSize = 1_000;
const columns = {
  at: ({ at_ms }: DenialBody) => new Date(at_ms).toISOString(),
  subject: ({ dimensions }: DenialBody) => renderPairs({ dimensions }),
  request: requestOf,
  policy: ({ policy }: DenialBody) => policy,
  limit: ({ limit }: DenialBody) => limit,
  window: ({ window }: DenialBody) => window,
  reason: ({ reason }: DenialBody) => reason,
  cost: ({ cost }: DenialBody) => cost,
  denials: ({ denials }: DenialBody) => denials,
  node: ({ node }: DenialBody) => node,
};

/** Who was denied lately, and why. A row leads to its explanation. */
export default function DenialsView(): ReactNode {
  const search = route.useSearch();
  const navigate = route.useNavigate();
  const { policy, dimension, subject, range = "24h" } = search;
  const found = dimension !== undefined && subject !== undefined ? { dimension, subject } : {};
  const { data, error, isLoading, refetch } = useQuery({
    queryKey: ["denials", policy, found, range],
    queryFn: ({ signal }) => {
      const { fromMs, toMs } = boundsOf(range, Date.now());
      return admin.denials({ policy, ...found, from_ms: fromMs, to_ms: toMs, limit: pageSize }, signal);
    },
    refetchInterval: 10_000,
  });
  const change = (next: Partial<typeof search>) =>
    void navigate({ search: (old) => ({ ...old, ...next }), replace: true });
  const isFiltered = policy !== undefined || subject !== undefined;
  return (
    <Page
      about="Recent denials of all nodes. Under a flood they are sampled; every row says how many denials it stands for."
      actions={<ExportMenu columns={columns} name="denials" rows={data?.items ?? []} />}
      title="Denials"
    >
      <div className="flex flex-wrap items-end gap-3">
        <SubmittedField label="Policy" onSubmit={(value) => change({ policy: value })} value={policy} />
        <SubmittedField
          label="Dimension"
          onSubmit={(value) =>
            change({ dimension: value ?? undefined, ...(value === undefined && { subject: undefined }) })
          }
          placeholder="tenant"
          value={dimension}
        />
        <SubmittedField
          label="Subject"
          onSubmit={(value) => change({ subject: value, dimension: dimension ?? "tenant" })}
          placeholder="acme"
          value={subject}
        />
        {isFiltered && (
          <Button kind="quiet" onClick={() => change({ policy: undefined, dimension: undefined, subject: undefined })}>
            Clear filters
          </Button>
        )}
        <div className="ml-auto">
          <TimeRangePicker
            onChange={(next: TimeRange) => change({ range: next === "24h" ? undefined : next })}
            value={range}
          />
        </div>
      </div>
      {error !== null && (
        <ErrorNotice error={error} onRetry={() => void refetch()} what="The denials cannot be shown" />
      )}
      <Card
        aside={
          data !== undefined &&
          `${formatNoun(data.denials, "denial")} in ${formatNoun(data.items.length, "record")}${data.next === undefined ? "" : ", the newest"}`
        }
        flush
        title="Recent denials"
      >
        {isLoading && <SkeletonRows />}
        {data !== undefined && (
          <DataTable
            columns={denialColumns}
            empty={<NoDenials filtered={isFiltered} range={range} />}
            label="Denials"
            onOpen={({ dimensions, cost }) =>
              void navigate({ to: "/why", search: { request: renderPairs({ dimensions, cost }) } })
            }
            rowKey={denialKey}
            rows={data.items}
          />
        )}
        {data !== undefined && data.mixed > 0 && subject !== undefined && (
          <p className="px-4 py-2 text-xs text-ink-faint">
            {formatCount(data.mixed)} more denials of the same time were recorded for several subjects together; some
            may be of {subject}.
          </p>
        )}
      </Card>
    </Page>
  );
}

function NoDenials({ filtered, range }: { readonly filtered: boolean; readonly range: TimeRange }): ReactNode {
  if (filtered)
    return (
      <EmptyState icon="filter" title="No denial matches the filters">
        Clear a filter, or choose a longer time than {range}. Denials are kept for three days unless --denial-retention
        says otherwise.
      </EmptyState>
    );
  return (
    <EmptyState icon="check" title={`No request was denied in the last ${range}`}>
      Denials appear here within ten seconds. To see decisions as they are made, open the live tail.
    </EmptyState>
  );
}
