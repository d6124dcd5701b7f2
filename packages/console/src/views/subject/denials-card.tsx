import { useQuery } from "@tanstack/react-query";
import { Link, useNavigate } from "@tanstack/react-router";
import type { ReactNode } from "react";
import { admin } from "../../api/admin.ts";
import type { SubjectName } from "../../api/subjects.ts";
import { denialColumns, denialKey } from "../../decision/denial-columns.tsx";
import { renderPairs } from "../../decision/parse-request.ts";
import { formatNoun } from "../../format/numbers.ts";
import { Card } from "../../ui/card.tsx";
import { DataTable } from "../../ui/data-table.tsx";
import { EmptyState } from "../../ui/empty-state.tsx";
import { ErrorNotice } from "../../ui/error-notice.tsx";
import { SkeletonRows } from "../../ui/skeleton.tsx";

const columns = denialColumns.filter(({ id }) => id !== "subject");

/** Its latest denials. A row leads to its explanation. */
export function DenialsCard({ name }: { readonly name: SubjectName }): ReactNode {
  const navigate = useNavigate();
  const { dimension, value: subject } = name;
  const { data, error, isLoading } = useQuery({
    queryKey: ["denials", "subject", dimension, subject],
    queryFn: ({ signal }) => admin.denials({ dimension, subject, limit: 10 }, signal),
    refetchInterval: 5_000,
  });
  return (
    <Card
      aside={
        <>
          {data !== undefined && formatNoun(data.denials, "denial in 24 hours", "denials in 24 hours")}
          <Link className="text-accent hover:underline" search={{ dimension, subject }} to="/denials">
            All denials
          </Link>
        </>
      }
      flush
      title="Latest denials"
    >
      {error !== null && <ErrorNotice error={error} what="The denials cannot be shown" />}
      {isLoading && <SkeletonRows rows={3} />}
      {data !== undefined && (
        <DataTable
          columns={columns}
          empty={
            <EmptyState icon="check" title="Not denied in the last 24 hours">
              Every request passed, or none was made.
            </EmptyState>
          }
          label="Latest denials"
          onOpen={({ dimensions, cost }) =>
            void navigate({ to: "/why", search: { request: renderPairs({ dimensions, cost }) } })
          }
          rowKey={denialKey}
          rows={data.items}
        />
      )}
    </Card>
  );
}
