import type { PolicyBody, PolicySummaryBody } from "@sluice/protocol/admin";
import { Link } from "@tanstack/react-router";
import { type Context, createContext, type ReactNode, useContext, useEffect } from "react";
import { formatCompact } from "../../format/numbers.ts";
import { sum } from "../../format/periods.ts";
import { Badge } from "../../ui/badge.tsx";
import type { TableColumn } from "../../ui/data-table.tsx";
import { RelativeTime } from "../../ui/relative-time.tsx";
import { ShareBar } from "../../ui/share-bar.tsx";
import { Skeleton } from "../../ui/skeleton.tsx";
import { Sparkline, withoutLast } from "../../ui/sparkline.tsx";
import { findStates, stateLabels } from "./policy-state.ts";

interface Summaries {
  /** Those that have arrived. */
  readonly byId: ReadonlyMap<string, PolicySummaryBody>;
  /** Some cannot be had: what is missing will not arrive soon. */
  readonly failed: boolean;
  /** Asks for the summary of a policy whose row is drawn. */
  readonly show: (id: string) => void;
}

/** Not in the columns: a summary that arrives draws its cells again, and leaves the table as it is. */
export const SummariesContext: Context<Summaries> = createContext<Summaries>({
  byId: new Map(),
  failed: false,
  show: () => undefined,
});

export const policyColumns: readonly TableColumn<PolicyBody>[] = [
  {
    id: "id",
    title: "Policy",
    sortBy: ({ id }) => id,
    cell: ({ id, document }) => (
      <span className="flex items-baseline gap-2.5">
        <Link
          className="shrink-0 font-medium text-accent hover:underline"
          params={{ id }}
          search={{}}
          to="/policies/$id"
        >
          {id}
        </Link>
        <span className="truncate text-xs text-ink-faint" title={String(document.description ?? "")}>
          {String(document.description ?? "")}
        </span>
      </span>
    ),
  },
  {
    id: "owner",
    title: "Owner",
    width: "7rem",
    sortBy: ({ owner = "" }) => owner,
    cell: ({ owner }) => owner ?? <None />,
  },
  {
    id: "state",
    title: "State",
    width: "9.5rem",
    sortBy: (policy) => findStates(policy)[0]!,
    cell: (policy) => (
      <span className="flex gap-1">
        {findStates(policy).map((state) => {
          const { label, tone, about } = stateLabels[state];
          const percent = state === "rollout" ? ` ${policy.rollout?.percent} %` : "";
          return (
            <Badge key={state} title={about} tone={tone}>
              {label}
              {percent}
            </Badge>
          );
        })}
      </span>
    ),
  },
  {
    id: "usage",
    title: "Last 24 hours",
    width: "15.5rem",
    cell: ({ id }) => <Usage id={id} />,
  },
  {
    id: "headroom",
    title: "Closest to its limit",
    width: "9.5rem",
    cell: ({ id }) => <Headroom id={id} />,
  },
  {
    id: "changed",
    title: "Changed",
    right: true,
    width: "7rem",
    sortBy: ({ changed_ms: ms }) => ms,
    cell: ({ changed_ms: ms }) => <RelativeTime ms={ms} />,
  },
];

function None(): ReactNode {
  return <span className="text-ink-faint">–</span>;
}

function Usage({ id }: { readonly id: string }): ReactNode {
  const { byId, failed, show } = useContext(SummariesContext);
  const summary = byId.get(id);
  useEffect(() => show(id), [id, show]);
  if (summary === undefined) return failed ? <None /> : <Skeleton className="h-5 w-28" />;
  // An editor sees the usage of its team's policies.
  if (summary.usage === undefined) return <None />;
  const { allowed, denied } = summary.usage;
  const [decided, refused] = [sum(allowed) + sum(denied), sum(denied)];
  if (decided === 0) return <span className="text-xs text-ink-faint">not used</span>;
  return (
    <span className="flex items-center gap-2.5">
      <Sparkline {...withoutLast({ allowed, denied })} label={`Decisions of ${id} by hour`} width={80} />
      <span className="text-xs whitespace-nowrap text-ink-faint">
        {formatCompact(decided)}
        {refused > 0 && <span className="text-denied">, {formatCompact(refused)} denied</span>}
      </span>
    </span>
  );
}

function Headroom({ id }: { readonly id: string }): ReactNode {
  const { byId, failed } = useContext(SummariesContext);
  const summary = byId.get(id);
  const headroom = summary?.headroom;
  if (headroom === undefined) return summary === undefined && !failed ? <Skeleton className="h-4 w-20" /> : <None />;
  const { share, limit, tier, window, cost, capacity, step } = headroom;
  const plan = tier === undefined ? "" : ` on the plan ${tier}`;
  const label = `Busiest ${step} of the last 24 hours${plan}: ${formatCompact(cost)} of ${formatCompact(capacity)} under ${limit}, ${window}. Subjects with a custom limit are left out.`;
  return <ShareBar label={label} share={share} />;
}
