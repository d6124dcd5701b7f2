import type { StatusBody } from "@sluice/protocol/http";
import type { ReactNode } from "react";
import { formatCompact } from "../../format/numbers.ts";
import { Card } from "../../ui/card.tsx";
import { DataTable, type TableColumn } from "../../ui/data-table.tsx";
import { EmptyState } from "../../ui/empty-state.tsx";

type Sink = NonNullable<StatusBody["sinks"]>[number];

const count = (id: keyof Omit<Sink, "sink">, title: string): TableColumn<Sink> => ({
  id,
  title,
  right: true,
  cell: (sink) => (
    <span className={id === "dropped" && sink.dropped > 0 ? "text-denied" : undefined}>{formatCompact(sink[id])}</span>
  ),
  sortBy: (sink) => sink[id],
});

const columns: readonly TableColumn<Sink>[] = [
  { id: "sink", title: "Sink", cell: ({ sink }) => <span className="font-mono text-xs">{sink}</span>, width: "40%" },
  count("waiting", "Waiting"),
  count("sent", "Sent"),
  count("failed", "Failed sends"),
  count("dropped", "Dropped"),
];

/** Where usage events go. */
export function SinksCard({ sinks }: { readonly sinks: readonly Sink[] }): ReactNode {
  return (
    <Card flush title="Usage event sinks">
      <DataTable
        columns={columns}
        empty={
          <EmptyState icon="upload" title="Usage events go nowhere">
            With --usage-events, a server sends what it decided to a collector, a stream, a topic or a file.
          </EmptyState>
        }
        label="Sinks"
        rowKey={({ sink }) => sink}
        rows={sinks}
      />
    </Card>
  );
}
