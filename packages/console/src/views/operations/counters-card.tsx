import type { StatusBody } from "@sluice/protocol/http";
import type { ReactNode } from "react";
import { formatCompact, formatCount } from "../../format/numbers.ts";
import { Badge, type Tone } from "../../ui/badge.tsx";
import { Card } from "../../ui/card.tsx";
import { DataTable, type TableColumn } from "../../ui/data-table.tsx";

type Counters = StatusBody["counters"];
type Shard = Extract<Counters, { readonly kind: "redis" }>["shards"][number];

const breakers: Readonly<Record<Shard["breaker"], readonly [text: string, tone: Tone]>> = {
  closed: ["closed", "good"],
  open: ["open", "denied"],
  half_open: ["half open", "warning"],
};

const columns: readonly TableColumn<Shard>[] = [
  {
    id: "shard",
    title: "Server",
    cell: ({ shard }) => <span className="font-mono text-xs">{shard}</span>,
    sortBy: ({ shard }) => shard,
  },
  {
    id: "breaker",
    title: "Breaker",
    width: "6rem",
    cell: ({ breaker, connected }) => {
      const [text, tone] = breakers[breaker];
      return connected ? <Badge tone={tone}>{text}</Badge> : <Badge tone="denied">not connected</Badge>;
    },
  },
  {
    id: "trip",
    title: "Round trip",
    width: "6rem",
    right: true,
    cell: ({ round_trip_ms: ms }) => (ms === undefined ? "–" : `${Number(ms.toFixed(2))} ms`),
    sortBy: ({ round_trip_ms = 0 }) => round_trip_ms,
  },
  {
    id: "calls",
    title: "Calls",
    width: "5rem",
    right: true,
    cell: ({ calls }) => formatCompact(calls),
    sortBy: ({ calls }) => calls,
  },
  {
    id: "failed",
    title: "Failed",
    width: "4.5rem",
    right: true,
    cell: ({ failed_calls }) => formatCompact(failed_calls),
    sortBy: ({ failed_calls }) => failed_calls,
  },
];

/** Where counters are, and whether they can be asked. */
export function CountersCard({ counters }: { readonly counters: Counters }): ReactNode {
  if (counters.kind === "memory")
    return (
      <Card title="Counters">
        <p className="text-sm text-ink-soft">
          In the memory of this process: {formatCount(counters.counters)} of at most{" "}
          {formatCount(counters.max_counters)}, in {formatCompact(counters.bytes)} bytes. Each node counts separately.
        </p>
      </Card>
    );
  return (
    <Card
      aside={counters.ready ? <Badge tone="good">reachable</Badge> : <Badge tone="denied">unreachable</Badge>}
      flush
      title="Counter servers"
    >
      <DataTable
        columns={columns}
        label="Counter servers"
        rowKey={({ shard, cell = "" }) => `${cell} ${shard}`}
        rows={counters.shards}
      />
    </Card>
  );
}
