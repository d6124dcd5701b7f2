import type { RolloutBody, RolloutMinuteBody } from "@sluice/protocol/admin";
import { useQuery } from "@tanstack/react-query";
import type { ReactNode } from "react";
import { rollouts } from "../../api/rollouts.ts";
import { formatCount, formatShare } from "../../format/numbers.ts";
import { Badge, type Tone } from "../../ui/badge.tsx";
import { Card } from "../../ui/card.tsx";
import { Chart } from "../../ui/chart.tsx";
import { EmptyState } from "../../ui/empty-state.tsx";
import { ErrorNotice } from "../../ui/error-notice.tsx";
import { isUnderway } from "./rollout-words.tsx";

const minuteMs = 60_000;
const verdicts: Readonly<Record<string, readonly [text: string, tone: Tone]>> = {
  fine: ["as usual or better", "good"],
  strike: ["a strike", "denied"],
  unclear: ["unclear", "warning"],
  none: ["nothing to compare", "plain"],
};

/** The rate of denials of both versions, minute by minute, with the line beyond which Sluice rolls back. */
export function ComparisonCard({ rollout }: { readonly rollout: RolloutBody }): ReactNode {
  const { data, error } = useQuery({
    queryKey: ["rollout", rollout.id, "minutes"],
    queryFn: ({ signal }) => rollouts.minutes(rollout.id, signal),
    refetchInterval: isUnderway(rollout) ? 5_000 : false,
  });
  const { figures } = rollout;
  const [text, tone] = verdicts[figures?.verdict ?? "none"] ?? ["", "plain"];
  return (
    <Card
      aside={
        figures !== undefined && (
          <>
            <Badge tone={tone}>{text}</Badge> {rollout.strikes > 0 && `${rollout.strikes} of 3 strikes to roll back`}
          </>
        )
      }
      title="Old version against new"
    >
      {error !== null && <ErrorNotice error={error} what="The comparison cannot be shown" />}
      {figures !== undefined && (
        <dl className="mb-3 grid gap-x-6 gap-y-2 sm:grid-cols-2 xl:grid-cols-4">
          <Figure
            about={`${formatCount(figures.total.decided)} decided`}
            label="Denied under the new version"
            value={formatShare(figures.total.rate)}
          />
          <Figure
            about={`${formatCount(figures.total.baseline_decided)} decided`}
            label="The same subjects under the old one"
            value={formatShare(figures.total.baseline)}
          />
          <Figure about="above it is a strike" label="Threshold" value={formatShare(figures.total.threshold)} />
          <Figure about="deviation by chance" label="σ" value={formatShare(figures.total.sigma)} />
        </dl>
      )}
      {figures !== undefined && <p className="mb-3 text-sm text-ink-soft">{figures.sentence}</p>}
      {data !== undefined && <RateChart items={data.items} rollout={rollout} />}
    </Card>
  );
}

function RateChart({
  items,
  rollout,
}: {
  readonly items: readonly RolloutMinuteBody[];
  readonly rollout: RolloutBody;
}): ReactNode {
  const first = items[0]?.start_ms;
  const last = items.at(-1)?.start_ms;
  if (first === undefined || last === undefined || last === first)
    return (
      <EmptyState icon="rollout" title="Nothing was counted yet">
        The rates of both versions appear here, minute by minute, once requests arrive.
      </EmptyState>
    );
  const found = new Map(items.map((item) => [item.start_ms, item]));
  const times = Array.from({ length: Math.round((last - first) / minuteMs) + 1 }, (_, at) => first + at * minuteMs);
  const rates = (side: "old" | "new" | "shadow") =>
    times.map((time) => {
      const count = found.get(time)?.[side];
      return count === undefined || count.decided === 0 ? null : (100 * count.denied) / count.decided;
    });
  const fresh = rollout.shadow ? "shadow" : "new";
  const threshold = rollout.figures?.total.threshold;
  return (
    <Chart
      {...(threshold !== undefined && {
        band: { label: `Rolls back above ${formatShare(threshold)}`, at: threshold * 100 },
      })}
      format={(value) => `${Number(value.toFixed(2))} %`}
      height={240}
      label={`Share of denials per minute under both versions of ${rollout.policy}`}
      series={[
        { label: `Version ${rollout.from_version}, all of its subjects`, values: rates("old"), tone: "allowed" },
        {
          label: `Version ${rollout.to_version}${rollout.shadow ? " in shadow" : ""}`,
          values: rates(fresh),
          tone: "denied",
        },
      ]}
      times={times}
    />
  );
}

function Figure({
  label,
  value,
  about,
}: {
  readonly label: string;
  readonly value: string;
  readonly about: string;
}): ReactNode {
  return (
    <div>
      <dt className="text-xs text-ink-faint">{label}</dt>
      <dd className="text-xl font-semibold">
        {value} <span className="text-xs font-normal text-ink-faint">{about}</span>
      </dd>
    </div>
  );
}
