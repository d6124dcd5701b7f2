import type { LiveOverviewBody } from "@sluice/protocol/admin";
import { useQuery } from "@tanstack/react-query";
import { useNavigate, useSearch } from "@tanstack/react-router";
import { type ReactNode, useMemo, useState } from "react";
import { usageQuery } from "../../api/usage.ts";
import { formatCompact, formatRate, formatShare } from "../../format/numbers.ts";
import { fillPeriods, perSecond, sum } from "../../format/periods.ts";
import { useLiveState, useLiveTopic } from "../../session/live.tsx";
import { Card } from "../../ui/card.tsx";
import { Chart } from "../../ui/chart.tsx";
import { EmptyState } from "../../ui/empty-state.tsx";
import { ErrorNotice } from "../../ui/error-notice.tsx";
import { useNow } from "../../ui/now.ts";
import { Page } from "../../ui/page.tsx";
import { Skeleton } from "../../ui/skeleton.tsx";
import { Stat, StatRow } from "../../ui/stat.tsx";
import { TimeRangePicker } from "../../ui/time-range-picker.tsx";
import { boundsOf, stepMs, type TimeRange, timeRanges } from "../../url/time-range.ts";
import { HealthCard } from "./health-card.tsx";
import { LatencyCard } from "./latency-card.tsx";
import { keepLatest } from "./live-history.ts";
import { TopPolicies } from "./top-policies.tsx";
import { TopSubjects } from "./top-subjects.tsx";

const defaultRange: TimeRange = "1h";
/** Seconds of live samples that the page remembers. */
const liveSamples = 180;

export default function OverviewView(): ReactNode {
  const { range = defaultRange } = useSearch({ from: "/shell/" });
  const navigate = useNavigate({ from: "/" });
  const [live, setLive] = useState<readonly LiveOverviewBody[]>([]);
  useLiveTopic("overview", (data) =>
    setLive((samples) => keepLatest(samples, data as unknown as LiveOverviewBody, liveSamples)),
  );
  const choose = (next: TimeRange) => void navigate({ search: next === defaultRange ? {} : { range: next } });
  return (
    <Page
      about="What is decided now and over time, by all servers that share this policy store."
      actions={<TimeRangePicker onChange={choose} value={range} />}
      title="Overview"
    >
      <NowRow sample={live.at(-1)} />
      <DecisionsCard range={range} />
      <div className="grid gap-4 xl:grid-cols-2">
        <TopPolicies range={range} />
        <TopSubjects range={range} />
        <LatencyCard samples={live} />
        <HealthCard sample={live.at(-1)} />
      </div>
    </Page>
  );
}

function NowRow({ sample }: { readonly sample: LiveOverviewBody | undefined }): ReactNode {
  const live = useLiveState();
  if (sample === undefined && live === "off")
    return (
      <p className="rounded-lg border border-line bg-surface px-4 py-3 text-sm text-ink-faint" role="status">
        Live numbers are not available from this server. Those below are stored every ten seconds.
      </p>
    );
  if (sample === undefined)
    return (
      <StatRow label="Now">
        {["a", "b", "c", "d", "e", "f"].map((key) => (
          <Skeleton className="h-20" key={key} />
        ))}
      </StatRow>
    );
  const { decided, allowed, denied, degraded, shadow_denied: shadowDenied } = sample.per_second;
  const share = (part: number) => (decided === 0 ? "none decided" : `${formatShare(part / decided)} of decisions`);
  const { latency_ms: latency } = sample;
  return (
    <StatRow label="Now">
      <Stat
        about={`this second, on ${sample.node.name.replaceAll("-", "\u2011")}`}
        label="Decisions per second"
        value={formatLive(decided)}
      />
      <Stat about={share(allowed)} label="Allowed per second" tone="allowed" value={formatLive(allowed)} />
      <Stat
        about={share(denied)}
        label="Denied per second"
        tone={denied > 0 ? "denied" : "plain"}
        value={formatLive(denied)}
      />
      <Stat
        about={degraded > 0 ? "decided without the counters" : "counters answer"}
        label="Degraded per second"
        tone={degraded > 0 ? "degraded" : "plain"}
        value={formatRate(degraded)}
      />
      <Stat about="by policies in shadow mode" label="Would be denied" value={formatRate(shadowDenied)} />
      <Stat
        about={latency === undefined ? "nothing was decided" : `half within ${formatMs(latency.p50)}`}
        label="Latency, p99"
        value={latency === undefined ? "–" : formatMs(latency.p99)}
      />
    </StatRow>
  );
}

/** Seconds are not measured to the last millisecond, so 7.99 is 8. */
function formatLive(rate: number): string {
  return formatRate(rate < 1 ? rate : Math.round(rate));
}

function formatMs(ms: number): string {
  return ms < 1 ? `${Math.round(ms * 1_000)} µs` : `${formatCompact(ms)} ms`;
}

function DecisionsCard({ range }: { readonly range: TimeRange }): ReactNode {
  const nowMs = useNow();
  const { step, label } = timeRanges[range];
  const { fromMs, toMs } = boundsOf(range, nowMs);
  const { data, error, refetch } = useQuery(usageQuery({ fromMs, toMs, step }));
  const columns = useMemo(() => fillPeriods(data ?? [], fromMs, toMs, stepMs[step]), [data, fromMs, toMs, step]);
  const series = useMemo(() => {
    const rate = (values: readonly number[]) => perSecond(values, columns.times, stepMs[step], Date.now());
    // Degraded decisions are among the allowed and the denied.
    return [
      { label: "Allowed", values: rate(columns.allowed), tone: "allowed", stacked: true },
      { label: "Denied", values: rate(columns.denied), tone: "denied", stacked: true },
      { label: "Degraded", values: rate(columns.degraded), tone: "degraded", dashed: true },
    ];
  }, [columns, step]);
  const [allowed, denied] = [sum(columns.allowed), sum(columns.denied)];
  return (
    <Card
      aside={`${formatCompact(allowed + denied)} decisions, ${formatShare(allowed + denied === 0 ? 0 : denied / (allowed + denied))} denied`}
      title={`Decisions per second, last ${label}`}
    >
      {error !== null && data === undefined ? (
        <ErrorNotice error={error} onRetry={() => void refetch()} what="The history cannot be shown" />
      ) : data === undefined ? (
        <Skeleton className="h-60" />
      ) : allowed + denied === 0 ? (
        <EmptyState icon="overview" title={`Nothing was decided in the last ${label}`}>
          Send a check to this server, or choose a longer range. Decisions appear here within ten seconds.
        </EmptyState>
      ) : (
        <Chart
          format={formatRate}
          height={230}
          label={`Decisions per second, last ${label}`}
          series={series}
          times={columns.times}
        />
      )}
    </Card>
  );
}
