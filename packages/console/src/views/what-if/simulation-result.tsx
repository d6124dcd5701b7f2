import type { FoundLimits, HurtSubject, LimitStep, PeakReport, PolicyReport } from "@sluice/simulate";
import type { ReactNode } from "react";
import type { SimulationDocument } from "../../api/what-if.ts";
import { formatCount, formatRate, formatShare } from "../../format/numbers.ts";
import { Badge } from "../../ui/badge.tsx";
import { Card } from "../../ui/card.tsx";
import { Chart } from "../../ui/chart.tsx";
import { DataTable, type TableColumn } from "../../ui/data-table.tsx";
import { EmptyState } from "../../ui/empty-state.tsx";
import { Stat, StatRow } from "../../ui/stat.tsx";

/** What a simulation found: the same as the report of sluice simulate. */
export function SimulationResult({ document }: { readonly document: SimulationDocument }): ReactNode {
  const { identity, result } = document;
  const { requests, now, candidate, flips, hurt, left_out, notes } = result;
  const share = (count: number) => (requests === 0 ? 0 : count / requests);
  const range =
    candidate.range && `${formatCount(candidate.range.least_denied)} to ${formatCount(candidate.range.most_denied)}`;
  return (
    <>
      <StatRow label="What would change">
        <Stat about={identity && <Identity identity={identity} />} label="Requests" value={formatCount(requests)} />
        <Stat about={formatCount(now.denied)} label="Denied now" value={formatShare(now.denied_share)} />
        <Stat
          about={range ?? formatCount(candidate.denied)}
          label="Denied then"
          tone={candidate.denied > now.denied ? "denied" : "good"}
          value={formatShare(candidate.denied_share)}
        />
        <Stat
          about={formatCount(flips.allowed_denied)}
          label="Newly denied"
          tone={flips.allowed_denied > 0 ? "denied" : "plain"}
          value={formatShare(share(flips.allowed_denied))}
        />
        <Stat
          about={formatCount(flips.denied_allowed)}
          label="Newly allowed"
          tone={flips.denied_allowed > 0 ? "allowed" : "plain"}
          value={formatShare(share(flips.denied_allowed))}
        />
        <Stat
          about={hurt.exact ? "exact" : "at least"}
          label="Subjects newly hurt"
          value={formatCount(hurt.subjects)}
        />
      </StatRow>
      <Card flush title="Decisions, now and then">
        <DataTable
          columns={flipColumns}
          label="How many requests change their decision"
          rowKey={({ now: side }) => side}
          rows={[
            { now: "Allowed", allowed: flips.allowed_allowed, denied: flips.allowed_denied },
            { now: "Denied", allowed: flips.denied_allowed, denied: flips.denied_denied },
          ]}
        />
      </Card>
      <Card title="Over time">
        <OverTime result={result} />
      </Card>
      <div className="grid gap-4 xl:grid-cols-2">
        <Card flush title="Subjects newly hurt">
          <DataTable
            columns={hurtColumns}
            empty={
              <EmptyState icon="check" title="No subject is newly hurt">
                Every request that is allowed now would be allowed.
              </EmptyState>
            }
            label="Subjects newly hurt"
            rowKey={({ policy, scope, subject }) => `${policy} ${scope} ${subject}`}
            rows={hurt.top}
          />
        </Card>
        <Card flush title="Policies">
          <DataTable columns={policyColumns} label="Policies" rowKey={({ policy }) => policy} rows={result.policies} />
        </Card>
      </div>
      {result.limits !== undefined && <LimitFinder limits={result.limits} />}
      <Card flush title="Peaks of subjects within a window of the limit">
        <DataTable
          columns={peakColumns}
          label="Peaks of subjects"
          rowKey={({ policy, scope, window }) => `${policy} ${scope} ${window}`}
          rows={result.peaks}
        />
      </Card>
      <Card title="How far to trust it">
        <ul className="list-disc pl-5 text-sm text-ink-soft">
          {[...(identity?.causes ?? []), ...left_out, ...notes.map((message) => ({ message }))].map(({ message }) => (
            <li key={message}>{message}</li>
          ))}
        </ul>
      </Card>
    </>
  );
}

function Identity({ identity }: { readonly identity: NonNullable<SimulationDocument["identity"]> }): ReactNode {
  return identity.exact ? (
    <Badge tone="good">reproduced exactly</Badge>
  ) : (
    <Badge tone="warning">{formatShare(identity.share)} reproduced</Badge>
  );
}

function OverTime({ result }: { readonly result: SimulationDocument["result"] }): ReactNode {
  const { timeline, limit_lines: lines, policies } = result;
  const { buckets, bucket_ms: stepMs } = timeline;
  const perSecond = (pick: (bucket: (typeof buckets)[number]) => number) =>
    buckets.map((bucket) => (pick(bucket) * 1_000) / stepMs);
  // The line of a policy that this traffic does not meet would only press the rest flat.
  const line = lines.find(({ policy }) => policies.some((one) => one.policy === policy && one.requests > 0));
  return (
    <Chart
      band={line && { label: `${line.policy}: ${line.window}`, at: line.per_second }}
      format={(value) => `${formatRate(value)}/s`}
      label="Requests, and those denied now and by the candidate, each second"
      series={[
        { label: "Requests", tone: "accent", values: perSecond(({ requests }) => requests) },
        { label: "Denied by the candidate", tone: "denied", values: perSecond(({ denied }) => denied) },
        { label: "Denied now", tone: "warning", dashed: true, values: perSecond(({ denied_now }) => denied_now) },
      ]}
      times={buckets.map(({ at_ms }) => at_ms)}
    />
  );
}

function LimitFinder({ limits }: { readonly limits: FoundLimits }): ReactNode {
  const { steps, knee, none_denied: none } = limits;
  const columns: readonly TableColumn<LimitStep>[] = [
    { id: "factor", title: "Size", width: "5rem", cell: ({ factor }) => `×${factor}` },
    { id: "windows", title: "Windows", cell: ({ windows }) => windows.join(", ") },
    { id: "denied", title: "Denied", right: true, cell: ({ denied }) => formatCount(denied) },
    { id: "share", title: "Share", right: true, cell: ({ denied_share }) => formatShare(denied_share) },
    { id: "hurt", title: "Subjects hurt", right: true, cell: ({ subjects_hurt }) => formatCount(subjects_hurt) },
    {
      id: "mark",
      title: "Note",
      cell: (step) => (
        <>
          {knee !== undefined && steps[knee] === step && <Badge tone="accent">knee</Badge>}
          {none !== undefined && steps[none] === step && <Badge tone="good">nothing denied</Badge>}
        </>
      ),
    },
  ];
  return (
    <Card flush title={`Sizes of ${limits.policy}`}>
      <DataTable
        columns={columns}
        label={`Sizes of ${limits.policy}`}
        rowKey={({ factor }) => `${factor}`}
        rows={steps}
      />
    </Card>
  );
}

interface FlipRow {
  readonly now: string;
  readonly allowed: number;
  readonly denied: number;
}

const flipColumns: readonly TableColumn<FlipRow>[] = [
  { id: "now", title: "Now", cell: ({ now }) => now },
  { id: "allowed", title: "Allowed then", right: true, cell: ({ allowed }) => formatCount(allowed) },
  { id: "denied", title: "Denied then", right: true, cell: ({ denied }) => formatCount(denied) },
];

const hurtColumns: readonly TableColumn<HurtSubject>[] = [
  { id: "subject", title: "Subject", width: "7rem", cell: ({ subject }) => subject },
  { id: "limit", title: "Limit", cell: ({ policy, scope }) => `${policy} / ${scope}` },
  {
    id: "requests",
    title: "Requests",
    width: "5.75rem",
    right: true,
    sortBy: ({ requests }) => requests,
    cell: ({ requests }) => formatCount(requests),
  },
  {
    id: "denied",
    title: "Denied",
    width: "5.25rem",
    right: true,
    sortBy: ({ newly_denied }) => newly_denied,
    cell: ({ newly_denied }) => formatCount(newly_denied),
  },
  {
    id: "share",
    title: "Of traffic",
    width: "6rem",
    right: true,
    cell: ({ traffic_share }) => formatShare(traffic_share),
  },
];

const policyColumns: readonly TableColumn<PolicyReport>[] = [
  { id: "policy", title: "Policy", cell: ({ policy }) => policy },
  { id: "requests", title: "Requests", right: true, cell: ({ requests }) => formatCount(requests) },
  { id: "now", title: "Denied now", right: true, cell: ({ denied_now }) => formatCount(denied_now) },
  { id: "denied", title: "Denied then", right: true, cell: ({ denied }) => formatCount(denied) },
];

const peakColumns: readonly TableColumn<PeakReport>[] = [
  { id: "limit", title: "Limit", cell: ({ policy, scope }) => `${policy} / ${scope}` },
  { id: "window", title: "Window", cell: ({ window }) => window },
  { id: "p50", title: "Median", right: true, cell: ({ p50 }) => formatCount(p50) },
  { id: "p99", title: "99 %", right: true, cell: ({ p99 }) => formatCount(p99) },
  { id: "max", title: "Most", right: true, cell: ({ max }) => formatCount(max) },
  {
    id: "over",
    title: "Above the limit",
    right: true,
    cell: ({ subjects_over, subjects }) => `${formatCount(subjects_over)} of ${formatCount(subjects)}`,
  },
];
