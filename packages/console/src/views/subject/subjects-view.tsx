import type { KnownSubjectBody } from "@sluice/protocol/admin";
import { keepPreviousData, useInfiniteQuery } from "@tanstack/react-query";
import { getRouteApi } from "@tanstack/react-router";
import { type FormEvent, type ReactNode, useDeferredValue, useState } from "react";
import { subjects } from "../../api/subjects.ts";
import { formatNoun } from "../../format/numbers.ts";
import { Badge } from "../../ui/badge.tsx";
import { Button } from "../../ui/button.tsx";
import { Card } from "../../ui/card.tsx";
import { DataTable, type TableColumn } from "../../ui/data-table.tsx";
import { EmptyState } from "../../ui/empty-state.tsx";
import { ErrorNotice } from "../../ui/error-notice.tsx";
import { SearchField } from "../../ui/field.tsx";
import { Page } from "../../ui/page.tsx";
import { RelativeTime } from "../../ui/relative-time.tsx";
import { SkeletonRows } from "../../ui/skeleton.tsx";
import { SubjectLink } from "../../ui/subject-link.tsx";
import { SubmittedField } from "../../ui/submitted-field.tsx";

const route = getRouteApi("/shell/subjects");
const sources: Readonly<Record<string, string>> = {
  configured: "has settings",
  usage: "seen",
  denials: "denied lately",
};

const columns: readonly TableColumn<KnownSubjectBody>[] = [
  {
    id: "value",
    title: "Subject",
    cell: ({ dimension, value }) => <SubjectLink dimension={dimension} value={value} />,
    sortBy: ({ value }) => value,
  },
  { id: "dimension", title: "Dimension", cell: ({ dimension }) => dimension, sortBy: ({ dimension }) => dimension },
  {
    id: "known",
    title: "Known because it",
    cell: ({ known_by }) => (
      <span className="flex gap-1.5">
        {known_by.map((source) => (
          <Badge key={source} tone={source === "denials" ? "denied" : source === "configured" ? "accent" : "plain"}>
            {sources[source] ?? source}
          </Badge>
        ))}
      </span>
    ),
  },
  {
    id: "seen",
    title: "Last seen",
    right: true,
    cell: ({ seen_ms }) => (seen_ms === undefined ? "–" : <RelativeTime ms={seen_ms} />),
    sortBy: ({ seen_ms = 0 }) => seen_ms,
  },
];

/** Everyone who is limited, by the beginning of a name. */
export default function SubjectsView(): ReactNode {
  const search = route.useSearch();
  const navigate = route.useNavigate();
  const [typed, setTyped] = useState(search.q ?? "");
  const prefix = useDeferredValue(typed.trim());
  const { dimension } = search;
  const { data, error, isLoading, hasNextPage, fetchNextPage, isFetchingNextPage, refetch } = useInfiniteQuery({
    queryKey: ["subjects", "known", prefix, dimension],
    queryFn: ({ signal, pageParam }) => subjects.find({ prefix, dimension, limit: 100, after: pageParam }, signal),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: ({ next }) => next,
    placeholderData: keepPreviousData,
  });
  const rows = data?.pages.flatMap(({ items }) => items) ?? [];
  const open = ({ dimension: kind, value }: KnownSubjectBody) =>
    void navigate({ to: "/subjects/$kind/$value", params: { kind, value }, search: {} });
  return (
    <Page
      about="Who is limited: tenants, users, addresses, and every other dimension. Find one by the beginning of its name."
      title="Subjects"
    >
      <div className="flex flex-wrap items-end gap-3">
        <form
          onSubmit={(event: FormEvent) => {
            event.preventDefault();
            if (rows[0] !== undefined) open(rows[0]);
          }}
        >
          <SearchField
            className="w-80"
            label="Find a subject"
            onChange={(event) => {
              setTyped(event.target.value);
              void navigate({ search: (old) => ({ ...old, q: event.target.value || undefined }), replace: true });
            }}
            value={typed}
          />
        </form>
        <SubmittedField
          label="Dimension"
          onSubmit={(value) => void navigate({ search: (old) => ({ ...old, dimension: value }), replace: true })}
          placeholder="tenant"
          value={dimension}
        />
      </div>
      {error !== null && (
        <ErrorNotice error={error} onRetry={() => void refetch()} what="Subjects cannot be searched" />
      )}
      <Card
        aside={data !== undefined && `${formatNoun(rows.length, "subject")}${hasNextPage ? " or more" : ""}`}
        flush
        title="Known subjects"
      >
        {isLoading && <SkeletonRows />}
        {data !== undefined && (
          <DataTable
            columns={columns}
            empty={
              <NoSubject
                dimension={dimension}
                onOpen={(kind) => open({ dimension: kind, value: prefix, known_by: [] })}
                prefix={prefix}
              />
            }
            label="Subjects"
            onOpen={open}
            rowKey={(row) => `${row.dimension} ${row.value}`}
            rows={rows}
          />
        )}
        {hasNextPage && (
          <div className="px-4 py-2">
            <Button busy={isFetchingNextPage} onClick={() => void fetchNextPage()} small>
              Show more
            </Button>
          </div>
        )}
      </Card>
    </Page>
  );
}

interface NoSubjectProps {
  readonly prefix: string;
  readonly dimension: string | undefined;
  readonly onOpen: (dimension: string) => void;
}

function NoSubject({ prefix, dimension = "tenant", onOpen }: NoSubjectProps): ReactNode {
  if (prefix === "")
    return (
      <EmptyState icon="subject" title="No subject is known yet">
        Subjects appear here once they have a tier or limits, were denied, or were used and are counted by --usage-by.
      </EmptyState>
    );
  return (
    <EmptyState
      actions={
        <Button onClick={() => onOpen(dimension)}>
          Open {dimension} {prefix}
        </Button>
      }
      icon="search"
      title={`No known subject begins with “${prefix}”`}
    >
      It may still be limited by policies: open its page to see its counters.
    </EmptyState>
  );
}
