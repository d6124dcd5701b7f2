import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { type ReactNode, useMemo } from "react";
import { usageQuery } from "../../api/usage.ts";
import { formatCount, formatShare } from "../../format/numbers.ts";
import { fillPeriods, sum, type UsagePeriod } from "../../format/periods.ts";
import { Card } from "../../ui/card.tsx";
import { DataTable, type TableColumn } from "../../ui/data-table.tsx";
import { EmptyState } from "../../ui/empty-state.tsx";
import { ErrorNotice } from "../../ui/error-notice.tsx";
import { useNow } from "../../ui/now.ts";
import { SkeletonRows } from "../../ui/skeleton.tsx";
import { Sparkline, withoutLast } from "../../ui/sparkline.tsx";
import { boundsOf, stepMs, type TimeRange, timeRanges } from "../../url/time-range.ts";

interface PolicyRow {
  readonly policy: string;
  readonly decided: number;
  readonly denied: number;
  readonly allowedBy: readonly number[];
  readonly deniedBy: readonly number[];
}

/** Few enough to read, and to be drawn. */
const shown = 8;

export function TopPolicies({ range }: { readonly range: TimeRange }): ReactNode {
  const nowMs = useNow();
  const { fromMs, toMs } = boundsOf(range, nowMs);
  // Hours are enough for sums and sparklines of long ranges, and there are fewer of them.
  const step = timeRanges[range].ms > 6 * stepMs.hour ? "hour" : "minute";
  const { data, error } = useQuery(
    usageQuery({ fromMs: alignDown(fromMs, step), toMs, step }, { groupBy: ["policy"] }),
  );
  const rows = useMemo(
    () => collectRows(data ?? [], alignDown(fromMs, step), toMs, stepMs[step]),
    [data, fromMs, toMs, step],
  );
  return (
    <Card flush title={`Policies that denied most, last ${timeRanges[range].label}`}>
      {error !== null && data === undefined ? (
        <div className="px-4 pb-3">
          <ErrorNotice error={error} what="Usage by policy cannot be shown" />
        </div>
      ) : data === undefined ? (
        <SkeletonRows rows={4} />
      ) : (
        <DataTable
          columns={columns}
          empty={
            <EmptyState icon="check" title={`No policy decided in the last ${timeRanges[range].label}`}>
              Usage appears here within ten seconds of the first check.
            </EmptyState>
          }
          label="Policies that denied most"
          rowKey={({ policy }) => policy}
          rows={rows}
        />
      )}
    </Card>
  );
}

const columns: readonly TableColumn<PolicyRow>[] = [
  {
    id: "policy",
    title: "Policy",
    cell: ({ policy }) => (
      <Link className="font-medium text-accent hover:underline" params={{ id: policy }} search={{}} to="/policies/$id">
        {policy}
      </Link>
    ),
  },
  {
    id: "course",
    title: "Allowed and denied",
    width: "9.5rem",
    cell: ({ policy, allowedBy, deniedBy }) => (
      <Sparkline
        {...withoutLast({ allowed: allowedBy, denied: deniedBy })}
        label={`Allowed and denied by ${policy} over time`}
        width={110}
      />
    ),
  },
  { id: "denied", title: "Denied", right: true, width: "6rem", cell: ({ denied }) => formatCount(denied) },
  {
    id: "share",
    title: "Share",
    right: true,
    width: "5.5rem",
    cell: ({ decided, denied }) => formatShare(decided === 0 ? 0 : denied / decided),
  },
];

function alignDown(ms: number, step: "minute" | "hour"): number {
  return Math.floor(ms / stepMs[step]) * stepMs[step];
}

function collectRows(
  periods: readonly (UsagePeriod & { readonly policy?: string | undefined })[],
  fromMs: number,
  toMs: number,
  length: number,
): readonly PolicyRow[] {
  const byPolicy = Map.groupBy(periods, ({ policy }) => policy ?? "");
  const rows = [...byPolicy].map(([policy, own]): PolicyRow => {
    const { allowed, denied } = fillPeriods(own, fromMs, toMs, length);
    return { policy, decided: sum(allowed) + sum(denied), denied: sum(denied), allowedBy: allowed, deniedBy: denied };
  });
  return rows
    .filter(({ policy }) => policy !== "")
    .toSorted((one, other) => other.denied - one.denied || other.decided - one.decided)
    .slice(0, shown);
}
