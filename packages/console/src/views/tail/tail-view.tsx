import type { LiveDecisionBody, LiveDecisionsBody } from "@sluice/protocol/admin";
import { getRouteApi } from "@tanstack/react-router";
import { type ReactNode, useEffect, useMemo, useRef, useState } from "react";
import { requestOf, whoOf } from "../../decision/denial-columns.tsx";
import { renderPairs } from "../../decision/parse-request.ts";
import { formatCompact, formatCount } from "../../format/numbers.ts";
import { reasonWords } from "../../format/reasons.ts";
import { formatClock } from "../../format/times.ts";
import { type DecisionFilter, useLiveDecisions } from "../../session/live.tsx";
import { Badge } from "../../ui/badge.tsx";
import { Button } from "../../ui/button.tsx";
import { Card } from "../../ui/card.tsx";
import { DataTable, type TableColumn } from "../../ui/data-table.tsx";
import { EmptyState } from "../../ui/empty-state.tsx";
import { Page } from "../../ui/page.tsx";
import { PolicyLink } from "../../ui/policy-link.tsx";
import { Segmented } from "../../ui/segmented.tsx";
import { SubjectLink } from "../../ui/subject-link.tsx";
import { SubmittedField } from "../../ui/submitted-field.tsx";
import { type TailAnswer, tailAnswers } from "./tail-search.ts";

const route = getRouteApi("/shell/live");
/** What is shown; older decisions leave. */
const shownAtMost = 200;

interface TailRow extends LiveDecisionBody {
  readonly key: number;
}

const columns: readonly TableColumn<TailRow>[] = [
  {
    id: "at",
    title: "At",
    width: "6rem",
    cell: ({ at_ms }) => <span className="font-mono text-xs">{formatClock(at_ms)}</span>,
  },
  {
    id: "answer",
    title: "Answer",
    width: "6rem",
    cell: ({ allowed }) => <Badge tone={allowed ? "allowed" : "denied"}>{allowed ? "allowed" : "denied"}</Badge>,
  },
  {
    id: "subject",
    title: "Subject",
    cell: (row) => (
      <span className="flex items-center gap-2">
        {whoOf(row).map(([name, value]) => (
          <span className="truncate" key={name}>
            <span className="text-xs text-ink-faint">{name} </span>
            <SubjectLink dimension={name} value={value} />
          </span>
        ))}
      </span>
    ),
  },
  {
    id: "request",
    title: "Request",
    width: "11rem",
    cell: (row) => <span className="font-mono text-xs">{requestOf(row)}</span>,
  },
  {
    id: "policy",
    title: "Policy",
    cell: ({ policy, limit }) => (
      <>
        <PolicyLink id={policy} /> <span className="text-xs text-ink-faint">{limit}</span>
      </>
    ),
  },
  {
    id: "why",
    title: "Why",
    width: "12rem",
    cell: ({ reason, window, degraded }) => <span title={degraded}>{reasonWords(reason, window)}</span>,
  },
  {
    id: "left",
    title: "Left",
    width: "4.5rem",
    right: true,
    cell: ({ remaining }) => (remaining === undefined ? "–" : formatCompact(remaining)),
  },
  {
    id: "for",
    title: "Stands for",
    width: "6.5rem",
    right: true,
    cell: ({ stands_for }) => formatCount(stands_for),
  },
];

/** Decisions as they are made: a sample, which says what it stands for. */
export default function TailView(): ReactNode {
  const { policy, dimension, subject, answer = "all" } = route.useSearch();
  const navigate = route.useNavigate();
  const [paused, setPaused] = useState(false);
  const allowed = answer === "all" ? undefined : answer === "allowed";
  const whom = dimension !== undefined && subject !== undefined ? { dimension, subject } : {};
  const filter: DecisionFilter = { policy, ...whom, allowed };
  const { rows, seen, node, clear } = useTail(paused ? undefined : filter);
  const change = (next: object) => void navigate({ search: (old) => ({ ...old, ...next }), replace: true });
  return (
    <Page
      about="Decisions of the server that answers, as they are made. At most twenty a second are shown; each says how many it stands for."
      actions={
        <>
          <Button kind="quiet" onClick={clear}>
            Clear
          </Button>
          <Button icon={paused ? "play" : "pause"} onClick={() => setPaused(!paused)}>
            {paused ? "Resume" : "Pause"}
          </Button>
        </>
      }
      title="Live tail"
    >
      <div className="flex flex-wrap items-end gap-3">
        <SubmittedField label="Policy" onSubmit={(value) => change({ policy: value })} value={policy} />
        <SubmittedField
          label="Dimension"
          onSubmit={(value) => change({ dimension: value })}
          placeholder="tenant"
          value={dimension}
        />
        <SubmittedField
          label="Subject"
          onSubmit={(value) => change({ subject: value, dimension: dimension ?? "tenant" })}
          placeholder="acme"
          value={subject}
        />
        <div className="ml-auto">
          <Segmented
            label="Answers"
            onChange={(next: TailAnswer) => change({ answer: next === "all" ? undefined : next })}
            options={tailAnswers.map((value) => ({
              value,
              label: value === "all" ? "All" : value === "denied" ? "Denied" : "Allowed",
            }))}
            value={answer}
          />
        </div>
      </div>
      <Card
        aside={
          <span aria-live="off">
            {paused && <Badge tone="warning">paused</Badge>} {formatCount(rows.length)} shown of {formatCount(seen)}{" "}
            decided
            {node !== undefined && ` by ${node}`}
          </span>
        }
        flush
        title="Decisions"
      >
        <DataTable
          columns={columns}
          empty={
            <EmptyState icon="live" title={paused ? "Paused" : "Waiting for decisions"}>
              {paused
                ? "Resume to see decisions again."
                : "None matches yet. If there is traffic on another server, open the console there: each shows what it decides."}
            </EmptyState>
          }
          label="Live decisions"
          onOpen={({ dimensions, cost }) =>
            void navigate({ to: "/why", search: { request: renderPairs({ dimensions, cost }) } })
          }
          rowKey={({ key }) => String(key)}
          rows={rows}
        />
      </Card>
    </Page>
  );
}

/** The latest decisions, newest first. A changed filter begins anew; a pause keeps what there is. */
function useTail(filter: DecisionFilter | undefined) {
  const [rows, setRows] = useState<readonly TailRow[]>([]);
  const [seen, setSeen] = useState(0);
  const [node, setNode] = useState<string>();
  const count = useRef(0);
  const clear = () => {
    setRows([]);
    setSeen(0);
  };
  const wanted = useMemo(() => (filter === undefined ? undefined : JSON.stringify(filter)), [filter]);
  const last = useRef(wanted);
  useEffect(() => {
    if (wanted === undefined || wanted === last.current) return;
    last.current = wanted;
    setRows([]);
    setSeen(0);
  }, [wanted]);
  useLiveDecisions(filter, (data) => {
    const { items, matched, node: from } = data as unknown as LiveDecisionsBody;
    const fresh = items.map((item, at) => ({ ...item, key: count.current + at })).toReversed();
    count.current += items.length;
    setRows((old) => [...fresh, ...old].slice(0, shownAtMost));
    setSeen((old) => old + matched);
    setNode(from.name);
  });
  return { rows, seen, node, clear };
}
