import type { IdentityReport } from "../replay/identity-report.ts";
import type { FoundLimits } from "../replay/limit-finder.ts";
import type { PeakReport, SimulationReport } from "../replay/simulation-report.ts";
import { renderHtmlTable, renderPage } from "./html-page.ts";
import { listIdentity } from "./list-identity.ts";
import { renderCount, renderInstant, renderShare } from "./render-quantity.ts";
import { escapeHtml, type PlotPoint, renderPlot } from "./render-svg.ts";

export interface HtmlOptions {
  /** What the page is about: the logs and the policies. */
  readonly title: string;
  /** What is to be known of the logs, in sentences, before the notes of the report. */
  readonly notes: readonly string[];
  /** Undefined without a recording. */
  readonly identity?: IdentityReport | undefined;
}

/** More plots than this would hide the others. */
const mostPeaks = 12;

/** The report as one HTML file that needs nothing else, for light and dark screens. */
export function renderHtml(report: SimulationReport, { title, notes, identity }: HtmlOptions): string {
  const name = escapeHtml(title);
  const body = [
    `<h1>${name}</h1>`,
    renderHeadline(report),
    identity === undefined ? "" : section("Replayed under its own policies", list(listIdentity(identity))),
    section("Flips", renderFlips(report)),
    section("Policies", renderPolicies(report)),
    section("Over time", renderTimeline(report)),
    section("Subjects newly hurt", renderHurt(report)),
    report.limits === undefined
      ? ""
      : section(`Sizes of ${escapeHtml(report.limits.policy)}`, renderLimits(report.limits)),
    section("Peaks of subjects", report.peaks.slice(0, mostPeaks).map(renderPeaks).join("\n")),
    section("Left out", list(report.left_out.map(({ message }) => message))),
    section("Notes", list([...notes, ...report.notes])),
  ];
  return renderPage(name, body.filter((part) => part !== "").join("\n"));
}

function section(title: string, body: string): string {
  return body === "" ? "" : `<h2>${title}</h2>\n${body}`;
}

function list(sentences: readonly string[]): string {
  if (sentences.length === 0) return "";
  return `<ul>${sentences.map((sentence) => `<li>${escapeHtml(sentence)}</li>`).join("\n")}</ul>`;
}

function renderHeadline({ requests, first_ms, last_ms, candidate, now, flips, hurt }: SimulationReport): string {
  const span =
    first_ms === undefined || last_ms === undefined
      ? ""
      : ` from ${renderInstant(first_ms)} to ${renderInstant(last_ms)}`;
  const range =
    candidate.range === undefined
      ? ""
      : `, between ${renderCount(candidate.range.least_denied)} and ${renderCount(candidate.range.most_denied)}`;
  const card = (label: string, share: string, about: string, isBad = false): string =>
    `<div><dt>${label}</dt><dd class="big${isBad ? " bad" : ""}">${share}</dd><dd class="faint">${about}</dd></div>`;
  const of = (count: number): readonly [string, string] => [
    renderShare(count, requests),
    `${renderCount(count)} requests`,
  ];
  const cards = [
    card("Denied now", ...of(now.denied)),
    card(
      "Denied by the candidate",
      of(candidate.denied)[0],
      `${of(candidate.denied)[1]}${range}`,
      candidate.denied > now.denied,
    ),
    card("Newly denied", ...of(flips.allowed_denied), flips.allowed_denied > 0),
    card("Newly allowed", ...of(flips.denied_allowed)),
    card(
      "Subjects newly hurt",
      `${hurt.exact ? "" : "≥ "}${renderCount(hurt.subjects)}`,
      "with a newly denied request",
    ),
  ];
  return `<p>${renderCount(requests)} requests${span}</p>
<dl class="cards">${cards.join("")}</dl>`;
}

function renderFlips({ flips, requests }: SimulationReport): string {
  const cell = (count: number): string => `${renderCount(count)} <small>${renderShare(count, requests)}</small>`;
  return renderHtmlTable(
    ["now", "#allowed by the candidate", "#denied by the candidate"],
    [
      ["allowed", cell(flips.allowed_allowed), cell(flips.allowed_denied)],
      ["denied", cell(flips.denied_allowed), cell(flips.denied_denied)],
    ],
  );
}

function renderPolicies({ policies }: SimulationReport): string {
  return renderHtmlTable(
    ["policy", "#requests now", "#denied now", "#requests", "#denied", "#in shadow"],
    policies.map((one) => [
      escapeHtml(one.policy),
      ...[one.requests_now, one.denied_now, one.requests, one.denied, one.shadow_denied].map(renderCount),
    ]),
  );
}

function renderTimeline({ timeline, limit_lines }: SimulationReport): string {
  const { bucket_ms, buckets } = timeline;
  const perSecond = (pick: (bucket: (typeof buckets)[number]) => number): readonly PlotPoint[] =>
    buckets.map((bucket) => ({ x: bucket.at_ms, y: (pick(bucket) * 1000) / bucket_ms }));
  return renderPlot({
    title: `Requests a second in UTC, in steps of ${bucket_ms / 1000} s`,
    series: [
      { name: "requests", style: "demand", area: true, points: perSecond(({ requests }) => requests) },
      { name: "denied by the candidate", style: "denied", area: true, points: perSecond(({ denied }) => denied) },
      { name: "denied now", style: "denied-now", points: perSecond(({ denied_now }) => denied_now) },
    ],
    lines: limit_lines.map(({ policy, window, per_second }) => ({ y: per_second, name: `${policy}: ${window}` })),
    renderX: (atMs) => renderInstant(atMs).slice(spansDays(buckets) ? 5 : 11, 19),
    renderY: renderCount,
  });
}

function spansDays(buckets: SimulationReport["timeline"]["buckets"]): boolean {
  return (buckets.at(-1)?.at_ms ?? 0) - (buckets[0]?.at_ms ?? 0) > 86_400_000;
}

function renderHurt({ hurt }: SimulationReport): string {
  if (hurt.subjects === 0) return "<p>None: no request that is allowed now would be denied.</p>";
  const count = `<p>${hurt.exact ? "" : "At least "}${renderCount(hurt.subjects)} subjects. Those with the most newly denied requests:</p>`;
  const table = renderHtmlTable(
    ["policy", "limit", "subject", "#requests", "#newly denied", "#of traffic"],
    hurt.top.map((one) => [
      ...[one.policy, one.scope, one.subject].map(escapeHtml),
      renderCount(one.requests),
      renderCount(one.newly_denied),
      renderShare(one.traffic_share, 1),
    ]),
  );
  return `${count}\n${table}`;
}

function renderLimits({ steps, knee, none_denied }: FoundLimits): string {
  const mark = (index: number | undefined, name: string): { x: number; name: string }[] =>
    index === undefined ? [] : [{ x: steps[index]!.factor, name }];
  const plot = renderPlot({
    title: "Share of its requests that it denies, by the size of its limits",
    series: [
      {
        name: "denied",
        style: "denied",
        points: steps.map(({ factor, denied_share }) => ({ x: factor, y: 100 * denied_share })),
      },
    ],
    marks: [...mark(knee, "knee"), ...mark(none_denied, "nothing denied")],
    renderX: (x) => `×${x}`,
    renderY: (y) => `${Number(y.toPrecision(2))} %`,
    logX: true,
  });
  const table = renderHtmlTable(
    ["#size", "windows", "#denied", "#share", "#subjects hurt"],
    steps.map((step) => [
      `×${step.factor}`,
      escapeHtml(step.windows.join(", ")),
      renderCount(step.denied),
      renderShare(step.denied_share, 1),
      renderCount(step.subjects_hurt),
    ]),
  );
  return `${plot}\n${table}`;
}

function renderPeaks(one: PeakReport): string {
  return renderPlot({
    title: `${one.policy}, limit ${one.scope}, ${one.window}: ${renderCount(one.subjects_over)} of ${renderCount(one.subjects)} subjects ask for more at their peak`,
    series: [{ name: "peak of a subject", style: "curve", points: one.curve.map((y, x) => ({ x, y })) }],
    lines: [{ y: one.limit, name: one.window }],
    renderX: (x) => `${x} % of subjects`,
    renderY: renderCount,
  });
}
