import type { TopSubjectsBody } from "@sluice/protocol/admin";
import { useQuery } from "@tanstack/react-query";
import { type ReactNode, useState } from "react";
import { topSubjectsQuery } from "../../api/usage.ts";
import { formatCount, formatShare } from "../../format/numbers.ts";
import { Card } from "../../ui/card.tsx";
import { DataTable, type TableColumn } from "../../ui/data-table.tsx";
import { EmptyState } from "../../ui/empty-state.tsx";
import { ErrorNotice } from "../../ui/error-notice.tsx";
import { useNow } from "../../ui/now.ts";
import { Segmented } from "../../ui/segmented.tsx";
import { SkeletonRows } from "../../ui/skeleton.tsx";
import { SubjectLink } from "../../ui/subject-link.tsx";
import { boundsOf, type TimeRange, timeRanges } from "../../url/time-range.ts";

const dimensions = ["tenant", "user", "ip", "api_key"] as const;
type Dimension = (typeof dimensions)[number];
type Item = TopSubjectsBody["items"][number];

export function TopSubjects({ range }: { readonly range: TimeRange }): ReactNode {
  const nowMs = useNow();
  const [dimension, setDimension] = useState<Dimension>("tenant");
  const { fromMs, toMs } = boundsOf(range, nowMs);
  const { data, error } = useQuery(
    topSubjectsQuery({ fromMs, toMs, step: timeRanges[range].step }, dimension, "denied"),
  );
  const rows = data?.items.slice(0, 8) ?? [];
  return (
    <Card
      aside={
        <Segmented
          label="Subjects by"
          onChange={setDimension}
          options={dimensions.map((value) => ({ value, label: value }))}
          value={dimension}
        />
      }
      flush
      title="Subjects denied most"
    >
      {error !== null && data === undefined ? (
        <div className="px-4 pb-3">
          <ErrorNotice error={error} what="Usage by subject cannot be shown" />
        </div>
      ) : data === undefined ? (
        <SkeletonRows rows={4} />
      ) : (
        <DataTable
          columns={findColumns(dimension)}
          empty={
            <EmptyState icon="subject" title={`No usage by ${dimension} in the last ${timeRanges[range].label}`}>
              The server tracks subjects of the dimensions in <code className="font-mono text-xs">--usage-by</code>{" "}
              whose limits count by them.
            </EmptyState>
          }
          label="Subjects denied most"
          rowKey={({ subject }) => subject}
          rows={rows}
        />
      )}
    </Card>
  );
}

const columnsByDimension = new Map<string, readonly TableColumn<Item>[]>();

function findColumns(dimension: string): readonly TableColumn<Item>[] {
  const known = columnsByDimension.get(dimension);
  if (known !== undefined) return known;
  const columns: readonly TableColumn<Item>[] = [
    { id: "subject", title: "Subject", cell: ({ subject }) => <SubjectLink dimension={dimension} value={subject} /> },
    { id: "denied", title: "Denied", right: true, width: "7rem", cell: ({ denied }) => formatCount(denied) },
    { id: "decided", title: "Decided", right: true, width: "7rem", cell: ({ decided }) => formatCount(decided) },
    {
      id: "share",
      title: "Share",
      right: true,
      width: "5.5rem",
      cell: ({ decided, denied }) => formatShare(decided === 0 ? 0 : denied / decided),
    },
  ];
  columnsByDimension.set(dimension, columns);
  return columns;
}
