import { useQuery } from "@tanstack/react-query";
import { type ReactNode, useMemo, useState } from "react";
import type { Limit, Window } from "sluice";
import { limitScope, renderWindow } from "sluice/internal";
import { topSubjectsQuery, usageQuery } from "../../api/usage.ts";
import { formatCompact, formatShare } from "../../format/numbers.ts";
import { fillPeriods, wholePeriods } from "../../format/periods.ts";
import { compareWithWindow, lookBackMs } from "../../policy/window-usage.ts";
import { Card } from "../../ui/card.tsx";
import { Chart } from "../../ui/chart.tsx";
import { EmptyState } from "../../ui/empty-state.tsx";
import { ErrorNotice } from "../../ui/error-notice.tsx";
import { useNow } from "../../ui/now.ts";
import { Select } from "../../ui/select.tsx";
import { Skeleton } from "../../ui/skeleton.tsx";
import { boundsOf, stepMs, type TimeRange, timeRanges } from "../../url/time-range.ts";

interface WindowCardProps {
  readonly policy: string;
  readonly limits: readonly Limit[];
  readonly warnAt: number;
  readonly range: TimeRange;
}

interface Choice {
  readonly limit: Limit;
  readonly window: Window;
  readonly label: string;
}

/** What one subject was charged, against a window of its limit. */
export function WindowCard({ policy, limits, warnAt, range }: WindowCardProps): ReactNode {
  const choices = useMemo(() => listWindows(limits), [limits]);
  const [chosen, setChosen] = useState<string>();
  const choice = choices.find(({ label }) => label === chosen) ?? choices[0];
  const { subjects, error } = useBusiestSubjects(policy, choice?.limit, range);
  const [subject, setSubject] = useState<string>();
  const shown = subjects.find((one) => one === subject) ?? subjects[0];
  if (choice === undefined) return null;
  const { by } = choice.limit;
  return (
    <Card
      aside={
        <>
          {by.length > 0 && subjects.length > 0 && (
            <Select
              hideLabel
              label="Subject"
              onChange={setSubject}
              options={subjects.map((value) => ({ value, label: `${by[0]} ${value}` }))}
              value={shown ?? ""}
            />
          )}
          <Select
            hideLabel
            label="Window"
            onChange={setChosen}
            options={choices.map(({ label }) => ({ value: label, label }))}
            value={choice.label}
          />
        </>
      }
      title="Usage against the limit"
    >
      {error !== null && shown === undefined ? (
        <ErrorNotice error={error} what="Usage by subject cannot be shown" />
      ) : by.length > 0 && shown === undefined ? (
        <EmptyState icon="subject" title={`No usage by ${by[0]} is stored for this limit`}>
          The server keeps a history of subjects of the dimensions in{" "}
          <code className="font-mono text-xs">--usage-by</code>, and none of them used this policy in the last{" "}
          {timeRanges[range].label}.
        </EmptyState>
      ) : (
        <WindowChart choice={choice} policy={policy} range={range} subject={shown} warnAt={warnAt} />
      )}
    </Card>
  );
}

function listWindows(limits: readonly Limit[]): readonly Choice[] {
  return limits.flatMap((limit) =>
    limit.windows.map((window) => ({ limit, window, label: `${limitScope(limit)}: ${renderWindow(window)}` })),
  );
}

/** By their first dimension, by which usage is tracked. Those that stand for many are left out. */
function useBusiestSubjects(policy: string, limit: Limit | undefined, range: TimeRange) {
  const nowMs = useNow();
  const { fromMs, toMs } = boundsOf(range, nowMs);
  const dimension = limit?.by[0];
  const { data, error } = useQuery({
    ...topSubjectsQuery({ fromMs, toMs, step: timeRanges[range].step }, dimension ?? "", "decided", policy),
    enabled: dimension !== undefined,
  });
  const subjects = useMemo(
    (): readonly string[] =>
      dimension === undefined
        ? []
        : (data?.items ?? []).map(({ subject }) => subject).filter((one) => one !== "(other)"),
    [data, dimension],
  );
  return { subjects, error };
}

interface WindowChartProps {
  readonly policy: string;
  readonly choice: Choice;
  readonly subject: string | undefined;
  readonly warnAt: number;
  readonly range: TimeRange;
}

function WindowChart({ policy, choice, subject, warnAt, range }: WindowChartProps): ReactNode {
  const { limit, window } = choice;
  const nowMs = useNow();
  const { step } = timeRanges[range];
  const { fromMs, toMs } = boundsOf(range, nowMs);
  const length = stepMs[step];
  // A long window looks back beyond the range; not further than minutes are kept.
  const sinceMs = fromMs - Math.min(Math.ceil(lookBackMs(window, length) / length) * length, 30 * stepMs.day);
  const of = {
    policy,
    limitName: limitScope(limit),
    ...(subject !== undefined && { dimension: limit.by[0], subject }),
  };
  const { data } = useQuery(usageQuery({ fromMs: sinceMs, toMs, step }, of));
  const usage = useMemo(() => {
    const columns = fillPeriods(data ?? [], sinceMs, toMs, length);
    const whole = compareWithWindow(window, columns.times, columns.cost, length);
    const first = columns.times.findIndex((ms) => ms >= fromMs);
    return { ...whole, times: columns.times.slice(first), values: whole.values.slice(first) };
  }, [data, sinceMs, fromMs, toMs, length, window]);
  const series = useMemo(() => {
    const { values, times, isPerPeriod, meaning } = usage;
    const drawn = isPerPeriod ? wholePeriods(values, times, length, Date.now()) : values;
    return [{ label: `Cost, ${meaning}`, values: drawn, tone: "allowed", stacked: true }];
  }, [usage, length]);
  if (data === undefined) return <Skeleton className="h-52" />;
  const peak = Math.max(0, ...usage.values);
  const title = `${subject ?? "All requests"} against ${choice.label}`;
  return (
    <>
      <p className="pb-2 text-sm text-ink-soft">
        At most {formatCompact(peak)} of {formatCompact(usage.capacity)}, which is {formatShare(peak / usage.capacity)}.{" "}
        <span className="text-ink-faint">
          The band warns from {formatShare(warnAt)}.
          {limit.by.length > 1 &&
            ` All subjects of this ${limit.by[0]} are added up, so it may be above the limit of each.`}
          {Object.keys(limit.tiers).length > 0 && " Subjects of a plan may have other windows."}
        </span>
      </p>
      <Chart
        band={{ label: "Limit", at: usage.capacity, warnAt }}
        height={200}
        label={title}
        series={series}
        times={usage.times}
      />
    </>
  );
}
