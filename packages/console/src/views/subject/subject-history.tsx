import { keepPreviousData, useQuery } from "@tanstack/react-query";
import type { ReactNode } from "react";
import { admin } from "../../api/admin.ts";
import type { SubjectName } from "../../api/subjects.ts";
import { formatCount, formatRate } from "../../format/numbers.ts";
import { fillPeriods, perSecond, sum, type UsagePeriod } from "../../format/periods.ts";
import { Card } from "../../ui/card.tsx";
import { Chart } from "../../ui/chart.tsx";
import { EmptyState } from "../../ui/empty-state.tsx";
import { ErrorNotice } from "../../ui/error-notice.tsx";
import { Skeleton } from "../../ui/skeleton.tsx";
import { boundsOf, stepMs, type TimeRange, timeRanges } from "../../url/time-range.ts";

interface SubjectHistoryProps {
  readonly name: SubjectName;
  readonly range: TimeRange;
  readonly picker: ReactNode;
}

/** What was allowed and denied, period by period. */
export function SubjectHistory({ name, range, picker }: SubjectHistoryProps): ReactNode {
  const { step } = timeRanges[range];
  const { data, error } = useQuery({
    queryKey: ["usage", "subject", name.dimension, name.value, range],
    queryFn: async ({ signal }) => {
      const bounds = boundsOf(range, Date.now());
      const periods = await admin.usage({ step, ...bounds, dimension: name.dimension, subject: name.value }, signal);
      return { ...bounds, periods };
    },
    refetchInterval: 10_000,
    placeholderData: keepPreviousData,
  });
  return (
    <Card aside={picker} title="Decisions per second">
      {error !== null && <ErrorNotice error={error} what="The history cannot be shown" />}
      {data === undefined && error === null && <Skeleton className="h-48" />}
      {data !== undefined &&
        (data.periods.length === 0 ? (
          <EmptyState icon="history" title="No usage is recorded for this time">
            Usage is kept for subjects of the dimensions in --usage-by (tenant, unless it says otherwise). Choose a
            longer time, or look at its denials below.
          </EmptyState>
        ) : (
          <HistoryChart {...data} name={name} step={stepMs[step]} />
        ))}
    </Card>
  );
}

interface HistoryChartProps {
  readonly name: SubjectName;
  readonly fromMs: number;
  readonly toMs: number;
  readonly step: number;
  readonly periods: readonly UsagePeriod[];
}

function HistoryChart({ name, fromMs, toMs, step, periods }: HistoryChartProps): ReactNode {
  const columns = fillPeriods(periods, fromMs, toMs, step);
  const rate = (values: readonly number[]) => perSecond(values, columns.times, step, Date.now());
  const [allowed, denied] = [formatCount(sum(columns.allowed)), formatCount(sum(columns.denied))];
  return (
    <Chart
      format={formatRate}
      height={200}
      label={`${name.dimension} ${name.value}: ${allowed} allowed, ${denied} denied`}
      series={[
        { label: `Allowed ${allowed}`, values: rate(columns.allowed), tone: "allowed", stacked: true },
        { label: `Denied ${denied}`, values: rate(columns.denied), tone: "denied", stacked: true },
      ]}
      times={columns.times}
    />
  );
}
