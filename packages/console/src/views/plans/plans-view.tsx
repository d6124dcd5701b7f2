import type { PlanBody, PlanSummaryBody } from "@sluice/protocol/admin";
import { useQueries, useQuery } from "@tanstack/react-query";
import { Link, useNavigate, useSearch } from "@tanstack/react-router";
import { type ReactNode, useMemo } from "react";
import { planQuery, plansQuery } from "../../api/plans.ts";
import { formatCount } from "../../format/numbers.ts";
import { Can } from "../../session/can.tsx";
import { useMay } from "../../session/use-session.ts";
import { Button } from "../../ui/button.tsx";
import { Card } from "../../ui/card.tsx";
import { DataTable, type TableColumn } from "../../ui/data-table.tsx";
import { EmptyState } from "../../ui/empty-state.tsx";
import { ErrorNotice } from "../../ui/error-notice.tsx";
import { ExportMenu } from "../../ui/export-menu.tsx";
import { Page } from "../../ui/page.tsx";
import { SkeletonRows } from "../../ui/skeleton.tsx";
import { PlanDialog } from "./plan-dialog.tsx";
import { type MatrixCell, type MatrixRow, makeMatrix } from "./plan-matrix.ts";

/** Columns that fit on a screen; further plans are reached by their addresses. */
const mostColumns = 12;
/** Stands in the address for a plan that does not exist yet. */
const newPlan = "+";

export default function PlansView(): ReactNode {
  const { plan: open } = useSearch({ from: "/shell/plans" });
  const navigate = useNavigate({ from: "/plans" });
  const { data: list, error, refetch } = useQuery(plansQuery);
  const bodies = usePlanBodies(list);
  const edit = (plan: string | undefined) => void navigate({ search: plan === undefined ? {} : { plan } });
  const rows = useMemo(() => makeMatrix(bodies), [bodies]);
  return (
    <Page
      about="A plan, or tier, is what a customer’s subscription means in every policy. Subjects have a tier; a plan says which windows it brings."
      actions={
        <>
          <ExportMenu columns={csvColumns(list ?? [])} name="plans" rows={rows} />
          <Can permission="edit">
            <Button icon="plus" kind="primary" onClick={() => edit(newPlan)}>
              New plan
            </Button>
          </Can>
        </>
      }
      title="Plans"
    >
      {error !== null && list === undefined ? (
        <ErrorNotice error={error} onRetry={() => void refetch()} what="The plans cannot be listed" />
      ) : list === undefined ? (
        <SkeletonRows />
      ) : list.length === 0 ? (
        <NoPlans />
      ) : (
        <>
          <PlanTable edit={edit} list={list} />
          <Matrix list={list} rows={rows} />
        </>
      )}
      {open !== undefined && list !== undefined && (
        <PlanDialog
          isNew={open === newPlan}
          key={open}
          name={open === newPlan ? "" : open}
          onClose={() => edit(undefined)}
          rows={rows}
        />
      )}
    </Page>
  );
}

function usePlanBodies(list: readonly PlanSummaryBody[] | undefined): readonly PlanBody[] {
  return useQueries({
    queries: (list ?? []).slice(0, mostColumns).map(({ plan }) => planQuery(plan)),
    combine: collectPlans,
  });
}

function collectPlans(answers: readonly { readonly data: PlanBody | undefined }[]): readonly PlanBody[] {
  return answers.flatMap(({ data }) => (data === undefined ? [] : [data]));
}

function NoPlans(): ReactNode {
  const mayEdit = useMay("edit");
  return (
    <EmptyState icon="plans" title="There are no plans yet">
      A limit has windows for a plan under <code className="font-mono text-xs">tiers</code>.{" "}
      {mayEdit
        ? "Create a plan to give limits of several policies windows in one change."
        : "An editor can create a plan."}
    </EmptyState>
  );
}

function PlanTable({
  list,
  edit,
}: {
  readonly list: readonly PlanSummaryBody[];
  readonly edit: (plan: string) => void;
}): ReactNode {
  const mayEdit = useMay("edit");
  const columns = useMemo((): readonly TableColumn<PlanSummaryBody>[] => {
    const number = (id: "policies" | "limits" | "subjects", title: string): TableColumn<PlanSummaryBody> => ({
      id,
      title,
      right: true,
      width: "8rem",
      sortBy: (row) => row[id],
      cell: (row) => formatCount(row[id]),
    });
    return [
      {
        id: "plan",
        title: "Plan",
        sortBy: ({ plan }) => plan,
        cell: ({ plan }) => <span className="font-medium">{plan}</span>,
      },
      number("policies", "Policies"),
      number("limits", "Limits"),
      number("subjects", "Subjects"),
      {
        id: "edit",
        title: "",
        right: true,
        width: "7rem",
        cell: ({ plan }) => (
          <Button aria-label={`${mayEdit ? "Edit" : "Show"} plan ${plan}`} onClick={() => edit(plan)} small>
            {mayEdit ? "Edit" : "Show"}
          </Button>
        ),
      },
    ];
  }, [mayEdit, edit]);
  return (
    <Card flush title="All plans">
      <DataTable columns={columns} label="Plans" rowKey={({ plan }) => plan} rows={list} />
    </Card>
  );
}

function csvColumns(list: readonly PlanSummaryBody[]) {
  return {
    policy: ({ policy }: MatrixRow) => policy,
    limit: ({ limit }: MatrixRow) => limit,
    ...Object.fromEntries(
      list.map(({ plan }) => [plan, ({ cells }: MatrixRow) => cells.get(plan)?.windows.join(", ")]),
    ),
  };
}

function Matrix({
  list,
  rows,
}: {
  readonly list: readonly PlanSummaryBody[];
  readonly rows: readonly MatrixRow[];
}): ReactNode {
  const columns = useMemo(
    (): readonly TableColumn<MatrixRow>[] => [
      {
        id: "limit",
        title: "Limit",
        width: "18rem",
        sortBy: ({ policy, limit }) => `${policy} ${limit}`,
        cell: ({ policy, limit }) => (
          <span className="flex items-baseline gap-2">
            <Link
              className="font-medium text-accent hover:underline"
              params={{ id: policy }}
              search={{}}
              to="/policies/$id"
            >
              {policy}
            </Link>
            <span className="truncate text-xs text-ink-faint">{limit}</span>
          </span>
        ),
      },
      ...list.slice(0, mostColumns).map(({ plan: name }) => ({
        id: `plan ${name}`,
        title: name,
        cell: ({ cells }: MatrixRow) => <Cell cell={cells.get(name)} />,
      })),
    ],
    [list],
  );
  return (
    <Card
      aside={list.length > mostColumns && `the first ${mostColumns} of ${list.length}`}
      flush
      title="Limits by plan"
    >
      <DataTable
        columns={columns}
        empty={
          <EmptyState icon="plans" title="No limit has windows for a plan">
            Subjects have these tiers, but no policy says what they mean. Edit a plan to give limits windows for it.
          </EmptyState>
        }
        label="Limits by plan"
        rowKey={({ policy, limit }) => `${policy} ${limit}`}
        rows={rows}
      />
    </Card>
  );
}

const about = {
  plan: undefined,
  file: "From a policy file: change it there",
  own: "The limit’s own windows: it has none for this plan",
  none: "The limit does not apply to this plan",
} as const;

function Cell({ cell }: { readonly cell: MatrixCell | undefined }): ReactNode {
  if (cell === undefined || cell.kind === "none") return <span className="text-ink-faint">–</span>;
  return (
    <span
      className={cell.kind === "plan" ? "font-mono text-xs" : "font-mono text-xs text-ink-faint italic"}
      title={about[cell.kind]}
    >
      {cell.windows.join(", ")}
      {cell.kind === "file" && " (file)"}
    </span>
  );
}
