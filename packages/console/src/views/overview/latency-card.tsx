import type { LiveOverviewBody } from "@sluice/protocol/admin";
import { type ReactNode, useMemo } from "react";
import { Card } from "../../ui/card.tsx";
import { Chart } from "../../ui/chart.tsx";
import { EmptyState } from "../../ui/empty-state.tsx";

/** How long decisions take, since the page was opened: the server keeps no history of it. */
export function LatencyCard({ samples }: { readonly samples: readonly LiveOverviewBody[] }): ReactNode {
  const { times, series } = useMemo(
    () => ({
      times: samples.map(({ at_ms: atMs }) => atMs),
      series: [
        { label: "p99", values: samples.map(({ latency_ms: latency }) => latency?.p99 ?? null), tone: "accent" },
        {
          label: "p50",
          values: samples.map(({ latency_ms: latency }) => latency?.p50 ?? null),
          tone: "allowed",
          dashed: true,
        },
      ],
    }),
    [samples],
  );
  const hasAny = samples.some(({ latency_ms: latency }) => latency !== undefined);
  return (
    <Card aside="since this page was opened" title="Latency of decisions, in milliseconds">
      {hasAny ? (
        <Chart height={180} label="Latency of decisions in milliseconds" series={series} times={times} />
      ) : (
        <EmptyState icon="clock" title="No decision since this page was opened">
          Latency is shown live, as decisions are made by this node.
        </EmptyState>
      )}
    </Card>
  );
}
