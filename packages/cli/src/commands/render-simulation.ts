import type { FoundLimits, IdentityReport, SimulationReport } from "@sluice/simulate";
import { type FailVerdict, listIdentity, renderCount, renderInstant, renderShare } from "@sluice/simulate/report";
import { printable } from "sluice/internal";
import type { Paint } from "../terminal/paint.ts";
import { renderBar } from "../terminal/progress-line.ts";
import { renderSpark, squeeze } from "../terminal/render-spark.ts";
import { renderTable } from "../terminal/render-table.ts";

export interface SimulationView {
  readonly width: number | undefined;
  readonly paint: Paint;
  /** What is to be known of the logs, in sentences. */
  readonly logNotes: readonly string[];
  readonly verdicts: readonly FailVerdict[];
  /** Undefined without a recording. */
  readonly identity?: IdentityReport | undefined;
}

const usualWidth = 100;
const shownSubjects = 10;
const right = "right" as const;

/** The report as tables and plots. */
export function renderSimulation(report: SimulationReport, view: SimulationView): string {
  const { paint } = view;
  const parts = [
    view.identity === undefined
      ? ""
      : heading("Replayed under its own policies", paint) + renderIdentity(view.identity, paint),
    renderHead(report),
    renderSides(report, paint),
    heading("Flips", paint) + renderFlips(report),
    heading("Policies", paint) + renderPolicies(report, view),
    heading("Over time", paint) + renderTimeline(report, view),
    heading("Subjects newly hurt", paint) + renderHurt(report, view),
    report.limits === undefined
      ? ""
      : heading(`Sizes of ${printable(report.limits.policy)}`, paint) + renderLimits(report.limits, view),
    report.peaks.length === 0
      ? ""
      : heading("Peaks of subjects, within a window of the limit", paint) + renderPeaks(report, view),
    renderSentences(
      "Left out",
      report.left_out.map(({ message }) => message),
      paint,
    ),
    renderSentences("Notes", [...view.logNotes, ...report.notes], paint),
    view.verdicts.map((verdict) => renderVerdict(verdict, paint)).join(""),
  ];
  return parts.filter((part) => part !== "").join("\n");
}

function heading(text: string, paint: Paint): string {
  return `${paint.strong(text)}\n`;
}

function renderIdentity(identity: IdentityReport, paint: Paint): string {
  const [verdict = "", ...rest] = listIdentity(identity);
  const painted = identity.exact ? paint.good(verdict) : paint.bad(verdict);
  return `${painted}\n${rest.map((sentence) => `- ${printable(sentence)}\n`).join("")}`;
}

function renderHead({ requests, first_ms, last_ms }: SimulationReport): string {
  if (first_ms === undefined || last_ms === undefined) return "No requests.\n";
  return `${renderCount(requests)} requests from ${renderInstant(first_ms)} to ${renderInstant(last_ms)}\n`;
}

function renderSides({ requests, now, candidate }: SimulationReport, paint: Paint): string {
  const rows = [
    ["now", now],
    ["candidate", candidate],
  ] as const;
  return renderTable(
    [
      { title: "" },
      { title: "allowed", align: right },
      { title: "denied", align: right },
      { title: "share", align: right },
      { title: "range" },
    ],
    rows.map(([name, side]) => [
      name === "now" && side.source === "recording" ? "now (recorded)" : name,
      renderCount(side.allowed),
      renderCount(side.denied),
      renderShare(side.denied, requests),
      side.range === undefined
        ? ""
        : `${renderCount(side.range.least_denied)} … ${renderCount(side.range.most_denied)}`,
    ]),
  ).replace(/^candidate.*$/m, (line) => (candidate.denied > now.denied ? paint.bad(line) : line));
}

function renderFlips({ flips, requests }: SimulationReport): string {
  const cell = (count: number): string => `${renderCount(count)} (${renderShare(count, requests)})`;
  return renderTable(
    [{ title: "now" }, { title: "candidate allows", align: right }, { title: "candidate denies", align: right }],
    [
      ["allowed", cell(flips.allowed_allowed), cell(flips.allowed_denied)],
      ["denied", cell(flips.denied_allowed), cell(flips.denied_denied)],
    ],
  );
}

function renderPolicies({ policies, now }: SimulationReport, { width }: SimulationView): string {
  if (policies.length === 0) return "No policy counted a request.\n";
  const before = now.source === "policies";
  return renderTable(
    [
      { title: "policy", flexible: true },
      ...(before
        ? [
            { title: "requests now", align: right },
            { title: "denied now", align: right },
          ]
        : []),
      { title: "requests", align: right },
      { title: "denied", align: right },
      { title: "in shadow", align: right },
    ],
    policies.map((one) => [
      one.policy,
      ...(before ? [renderCount(one.requests_now), renderCount(one.denied_now)] : []),
      renderCount(one.requests),
      renderCount(one.denied),
      renderCount(one.shadow_denied),
    ]),
    width,
  );
}

function renderTimeline(
  { timeline, limit_lines }: SimulationReport,
  { width = usualWidth, paint }: SimulationView,
): string {
  const { buckets, bucket_ms } = timeline;
  const columns = Math.max(10, width - 24);
  const row = (
    name: string,
    pick: (bucket: (typeof buckets)[number]) => number,
    colour: (text: string) => string,
  ): string => {
    const values = buckets.map((bucket) => (pick(bucket) * 1000) / bucket_ms);
    const most = values.reduce((one, other) => Math.max(one, other), 0);
    return `${name.padEnd(10)} ${`${renderCount(most)}/s`.padStart(11)} ${colour(renderSpark(squeeze(values, columns), most))}\n`;
  };
  const rows = [
    row(
      "requests",
      ({ requests }) => requests,
      (text) => text,
    ),
    row("denied now", ({ denied_now }) => denied_now, paint.careful),
    row("denied", ({ denied }) => denied, paint.bad),
  ];
  const peak = buckets.reduce((most, { peak_per_second }) => Math.max(most, peak_per_second), 0);
  const lines = limit_lines.map(
    ({ policy, window, per_second }) =>
      `limit of ${printable(policy)} for all together: ${window}, ${renderCount(per_second)}/s\n`,
  );
  const scale = `each column shows the highest rate of its time, in steps of ${bucket_ms / 1000} s; the busiest second had ${renderCount(peak)}\n`;
  return [...rows, ...lines, paint.faint(scale)].join("");
}

function renderHurt({ hurt }: SimulationReport, { width }: SimulationView): string {
  if (hurt.subjects === 0) return "none: no request that is allowed now would be denied\n";
  const count = `${hurt.exact ? "" : "at least "}${renderCount(hurt.subjects)}; those with the most newly denied requests:\n`;
  return (
    count +
    renderTable(
      [
        { title: "policy" },
        { title: "limit" },
        { title: "subject", flexible: true },
        { title: "requests", align: right },
        { title: "newly denied", align: right },
        { title: "of traffic", align: right },
      ],
      hurt.top
        .slice(0, shownSubjects)
        .map((one) => [
          one.policy,
          one.scope,
          one.subject,
          renderCount(one.requests),
          renderCount(one.newly_denied),
          renderShare(one.traffic_share, 1),
        ]),
      width,
    )
  );
}

function renderLimits({ steps, knee, none_denied, subjects_exact }: FoundLimits, { width }: SimulationView): string {
  const most = steps.reduce((one, { denied_share }) => Math.max(one, denied_share), 0);
  const mark = (index: number): string =>
    [index === knee ? "← knee" : "", index === none_denied ? "← nothing denied" : ""].filter(Boolean).join(" ");
  return renderTable(
    [
      { title: "size", align: right },
      { title: "windows", flexible: true },
      { title: "denied", align: right },
      { title: "share", align: right },
      { title: subjects_exact ? "subjects hurt" : "subjects hurt, at least", align: right },
      { title: "" },
    ],
    steps.map((step, index) => [
      `×${step.factor}`,
      step.windows.join(", "),
      renderCount(step.denied),
      renderShare(step.denied_share, 1),
      renderCount(step.subjects_hurt),
      `${renderBar(most === 0 ? 0 : step.denied_share / most)} ${mark(index)}`,
    ]),
    width,
  );
}

function renderPeaks({ peaks }: SimulationReport, { width }: SimulationView): string {
  const number = (title: string): { title: string; align: "right" } => ({ title, align: right });
  return renderTable(
    [
      { title: "policy" },
      { title: "limit", flexible: true },
      { title: "window" },
      ...["p50", "p90", "p99", "p99.9", "max", "subjects", "above the limit"].map(number),
    ],
    peaks.map((one) => [
      one.policy,
      one.scope,
      one.window,
      ...[one.p50, one.p90, one.p99, one.p99_9, one.max, one.subjects].map(renderCount),
      `${renderCount(one.subjects_over)} (${renderShare(one.subjects_over, one.subjects)})`,
    ]),
    width,
  );
}

function renderSentences(title: string, sentences: readonly string[], paint: Paint): string {
  if (sentences.length === 0) return "";
  return heading(title, paint) + sentences.map((sentence) => `- ${printable(sentence)}\n`).join("");
}

function renderVerdict({ condition, failed, value }: FailVerdict, paint: Paint): string {
  const shown = `${renderCount(value)}${condition.endsWith("%") ? " %" : ""}`;
  return failed
    ? `${paint.bad("failed")}: ${condition}, it is ${shown}\n`
    : `${paint.good("passed")}: not ${condition}, it is ${shown}\n`;
}
