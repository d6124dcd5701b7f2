import type { PolicyBody, UsagePeriodBody } from "@sluice/protocol/admin";
import { useQuery } from "@tanstack/react-query";
import { type ReactNode, useMemo, useState } from "react";
import type { Limit } from "sluice";
import { topSubjectsQuery, usageQuery } from "../../api/usage.ts";
import { formatCompact, formatCount, formatRate, formatShare } from "../../format/numbers.ts";
import { fillPeriods, perSecond, sum } from "../../format/periods.ts";
import { Card } from "../../ui/card.tsx";
import { Chart } from "../../ui/chart.tsx";
import { DataTable, type TableColumn } from "../../ui/data-table.tsx";
import { EmptyState } from "../../ui/empty-state.tsx";
import { ErrorNotice } from "../../ui/error-notice.tsx";
import { useNow } from "../../ui/now.ts";
import { Segmented } from "../../ui/segmented.tsx";
import { Skeleton, SkeletonRows } from "../../ui/skeleton.tsx";
import { SubjectLink } from "../../ui/subject-link.tsx";
import { TimeRangePicker } from "../../ui/time-range-picker.tsx";
import { boundsOf, stepMs, type TimeRange, timeRanges } from "../../url/time-range.ts";
import type { PolicySearch } from "./policy-search.ts";
import { readLimits } from "./read-limits.ts";
import { WindowCard } from "./window-card.tsx";

const defaultRange: TimeRange = "24h";

interface UsageTabProps {
  readonly policy: PolicyBody;
  readonly search: PolicySearch;
  readonly setSearch: (change: PolicySearch) => void;
}

/** How much the policy is used, next to what it allows. */
export function UsageTab({ policy, search, setSearch }: UsageTabProps): ReactNode {
  const { range = defaultRange } = search;
  const { limits, warnAt } = useMemo(() => readLimits(policy.document), [policy.document]);
  return (
    <div className="flex flex-col gap-4">
      <div className="flex justify-end">
        <TimeRangePicker
          onChange={(next) => setSearch({ range: next === defaultRange ? undefined : next })}
          value={range}
        />
      </div>
      <DecisionsCard policy={policy.id} range={range} />
      {limits.length > 0 && <WindowCard limits={limits} policy={policy.id} range={range} warnAt={warnAt} />}
      <div className="grid gap-4 xl:grid-cols-2">
        <SubjectsCard limits={limits} policy={policy.id} range={range} />
        <DenialsCard policy={policy.id} range={range} />
      </div>
    </div>
  );
}

interface OfPolicy {
  readonly policy: string;
  readonly range: TimeRange;
}

function DecisionsCard({ policy, range }: OfPolicy): ReactNode {
  const nowMs = useNow();
  const { step, label } = timeRanges[range];
  const { fromMs, toMs } = boundsOf(range, nowMs);
  const { data, error, refetch } = useQuery(usageQuery({ fromMs, toMs, step }, { policy }));
  const columns = useMemo(() => fillPeriods(data ?? [], fromMs, toMs, stepMs[step]), [data, fromMs, toMs, step]);
  const series = useMemo(() => {
    const rate = (values: readonly number[]) => perSecond(values, columns.times, stepMs[step], Date.now());
    const drawn = [
      { label: "Allowed", values: rate(columns.allowed), tone: "allowed", stacked: true },
      { label: "Denied", values: rate(columns.denied), tone: "denied", stacked: true },
    ];
    const shadow = {
      label: "Would be denied (shadow)",
      values: rate(columns.shadowDenied),
      tone: "degraded",
      dashed: true,
    };
    return sum(columns.shadowDenied) > 0 ? [...drawn, shadow] : drawn;
  }, [columns, step]);
  const [allowed, denied] = [sum(columns.allowed), sum(columns.denied)];
  const decided = allowed + denied;
  return (
    <Card
      aside={decided > 0 && `${formatCompact(decided)} decisions, ${formatShare(denied / decided)} denied`}
      title={`Decisions per second, last ${label}`}
    >
      {error !== null && data === undefined ? (
        <ErrorNotice error={error} onRetry={() => void refetch()} what="The usage cannot be shown" />
      ) : data === undefined ? (
        <Skeleton className="h-52" />
      ) : decided === 0 ? (
        <EmptyState icon="overview" title={`It decided nothing in the last ${label}`}>
          Either no request matched, or another policy denied first: a decision counts for the limit that spoke. Choose
          a longer range, or ask under Why which policies a request meets.
        </EmptyState>
      ) : (
        <Chart
          format={formatRate}
          height={200}
          label={`Decisions of ${policy} per second`}
          series={series}
          times={columns.times}
        />
      )}
    </Card>
  );
}

function SubjectsCard({ policy, range, limits }: OfPolicy & { readonly limits: readonly Limit[] }): ReactNode {
  const nowMs = useNow();
  const { fromMs, toMs } = boundsOf(range, nowMs);
  const dimensions = useMemo(() => [...new Set(limits.flatMap(({ by }) => by))], [limits]);
  const [chosen, setChosen] = useState<string>();
  const dimension = chosen ?? dimensions[0] ?? "tenant";
  const { data, error } = useQuery(
    topSubjectsQuery({ fromMs, toMs, step: timeRanges[range].step }, dimension, "decided", policy),
  );
  const columns = useMemo(() => makeSubjectColumns(dimension), [dimension]);
  return (
    <Card
      aside={
        dimensions.length > 1 && (
          <Segmented
            label="Subjects by"
            onChange={setChosen}
            options={dimensions.map((value) => ({ value, label: value }))}
            value={dimension}
          />
        )
      }
      flush
      title="Top subjects"
    >
      {error !== null && data === undefined ? (
        <div className="px-4 pb-3">
          <ErrorNotice error={error} what="Usage by subject cannot be shown" />
        </div>
      ) : data === undefined ? (
        <SkeletonRows rows={4} />
      ) : (
        <DataTable
          columns={columns}
          empty={
            <EmptyState icon="subject" title={`No usage by ${dimension} in the last ${timeRanges[range].label}`}>
              The server keeps a history of subjects of the dimensions in{" "}
              <code className="font-mono text-xs">--usage-by</code>. Add {dimension} there to see it here.
            </EmptyState>
          }
          label="Top subjects"
          rowKey={({ subject }) => subject}
          rows={data.items}
        />
      )}
    </Card>
  );
}

type TopItem = { readonly subject: string; readonly decided: number; readonly denied: number; readonly cost: number };

function makeSubjectColumns(dimension: string): readonly TableColumn<TopItem>[] {
  return [
    { id: "subject", title: "Subject", cell: ({ subject }) => <SubjectLink dimension={dimension} value={subject} /> },
    {
      id: "decided",
      title: "Decided",
      right: true,
      width: "6.5rem",
      sortBy: ({ decided }) => decided,
      cell: ({ decided }) => formatCount(decided),
    },
    {
      id: "denied",
      title: "Denied",
      right: true,
      width: "6.5rem",
      sortBy: ({ denied }) => denied,
      cell: ({ denied }) => formatCount(denied),
    },
    {
      id: "cost",
      title: "Cost",
      right: true,
      width: "6.5rem",
      sortBy: ({ cost }) => cost,
      cell: ({ cost }) => formatCount(cost),
    },
  ];
}

interface DenialRow {
  readonly key: string;
  readonly limit: string;
  readonly window: string;
  readonly reason: string;
  readonly denied: number;
}

const denialColumns: readonly TableColumn<DenialRow>[] = [
  { id: "limit", title: "Limit", sortBy: ({ limit }) => limit, cell: ({ limit }) => limit || "–" },
  { id: "window", title: "Window", sortBy: ({ window }) => window, cell: ({ window }) => window || "–" },
  { id: "reason", title: "Reason", sortBy: ({ reason }) => reason, cell: ({ reason }) => reason.replaceAll("_", " ") },
  {
    id: "denied",
    title: "Denied",
    right: true,
    width: "7rem",
    sortBy: ({ denied }) => denied,
    cell: ({ denied }) => formatCount(denied),
  },
];

function DenialsCard({ policy, range }: OfPolicy): ReactNode {
  const nowMs = useNow();
  const { fromMs, toMs } = boundsOf(range, nowMs);
  const { data, error } = useQuery(
    usageQuery({ fromMs, toMs, step: timeRanges[range].step }, { policy, groupBy: ["limit"] }),
  );
  const rows = useMemo(() => sumDenials(data ?? []), [data]);
  return (
    <Card flush title="Denied by">
      {error !== null && data === undefined ? (
        <div className="px-4 pb-3">
          <ErrorNotice error={error} what="Denials cannot be shown" />
        </div>
      ) : data === undefined ? (
        <SkeletonRows rows={4} />
      ) : (
        <DataTable
          columns={denialColumns}
          empty={
            <EmptyState icon="check" title={`It denied nothing in the last ${timeRanges[range].label}`}>
              {limitsAreFine}
            </EmptyState>
          }
          label="Denials by limit, window and reason"
          rowKey={({ key }) => key}
          rows={rows}
        />
      )}
    </Card>
  );
}

const limitsAreFine = "Every request that it decided had room in its limits.";

function sumDenials(periods: readonly UsagePeriodBody[]): readonly DenialRow[] {
  const rows = new Map<string, DenialRow>();
  for (const { limit = "", denials } of periods) {
    for (const { window, reason, denied } of denials) {
      const key = JSON.stringify([limit, window, reason]);
      rows.set(key, { key, limit, window, reason, denied: denied + (rows.get(key)?.denied ?? 0) });
    }
  }
  return [...rows.values()].toSorted((one, other) => other.denied - one.denied);
}
