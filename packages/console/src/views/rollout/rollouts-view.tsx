import type { RolloutBody } from "@sluice/protocol/admin";
import { useQuery } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import type { ReactNode } from "react";
import { rollouts } from "../../api/rollouts.ts";
import { Card } from "../../ui/card.tsx";
import { DataTable, type TableColumn } from "../../ui/data-table.tsx";
import { EmptyState } from "../../ui/empty-state.tsx";
import { ErrorNotice } from "../../ui/error-notice.tsx";
import { Page } from "../../ui/page.tsx";
import { PolicyLink } from "../../ui/policy-link.tsx";
import { RelativeTime } from "../../ui/relative-time.tsx";
import { SkeletonRows } from "../../ui/skeleton.tsx";
import { isUnderway, RolloutState, waitWords } from "./rollout-words.tsx";

const columns: readonly TableColumn<RolloutBody>[] = [
  { id: "policy", title: "Policy", cell: ({ policy }) => <PolicyLink id={policy} />, sortBy: ({ policy }) => policy },
  {
    id: "versions",
    title: "Versions",
    width: "7rem",
    cell: ({ from_version, to_version }) => `${from_version} → ${to_version}`,
  },
  {
    id: "state",
    title: "State",
    width: "8rem",
    cell: (rollout) => <RolloutState rollout={rollout} />,
    sortBy: ({ state }) => state,
  },
  {
    id: "percent",
    title: "Share",
    width: "5rem",
    right: true,
    cell: ({ percent }) => `${percent} %`,
    sortBy: ({ percent }) => percent,
  },
  {
    id: "wait",
    title: "Waits for, or why it ended",
    cell: (rollout) => (isUnderway(rollout) ? waitWords(rollout) : rollout.reason),
  },
  { id: "author", title: "By", width: "10rem", cell: ({ author }) => author },
  {
    id: "at",
    title: "Changed",
    width: "7rem",
    right: true,
    cell: ({ changed_ms }) => <RelativeTime ms={changed_ms} />,
    sortBy: ({ changed_ms }) => changed_ms,
  },
];

/** New versions on their way to every subject, and those that arrived or were rolled back. */
export default function RolloutsView(): ReactNode {
  const navigate = useNavigate();
  const { data, error, isLoading, refetch } = useQuery({
    queryKey: ["rollouts", "all"],
    queryFn: ({ signal }) => rollouts.list({ limit: 200 }, signal),
    refetchInterval: 5_000,
  });
  const open = ({ id }: RolloutBody) => void navigate({ to: "/rollouts/$id", params: { id } });
  const table = (label: string, rows: readonly RolloutBody[], empty: ReactNode) => (
    <DataTable columns={columns} empty={empty} label={label} onOpen={open} rowKey={({ id }) => id} rows={rows} />
  );
  return (
    <Page
      about="A new version goes to a share of subjects first. Sluice rolls it back if it denies more than chance explains."
      title="Rollouts"
    >
      {error !== null && (
        <ErrorNotice error={error} onRetry={() => void refetch()} what="The rollouts cannot be shown" />
      )}
      {isLoading && <SkeletonRows />}
      {data !== undefined && (
        <>
          <Card flush title="Underway">
            {table(
              "Rollouts underway",
              data.items.filter(isUnderway),
              <EmptyState icon="rollout" title="No rollout is underway">
                Edit a policy and choose to roll it out, instead of publishing it to all subjects at once.
              </EmptyState>,
            )}
          </Card>
          <Card flush title="Ended">
            {table(
              "Rollouts that ended",
              data.items.filter((rollout) => !isUnderway(rollout)),
              <EmptyState icon="history" title="No rollout has ended yet">
                Each one stays here, with why it ended.
              </EmptyState>,
            )}
          </Card>
        </>
      )}
    </Page>
  );
}
