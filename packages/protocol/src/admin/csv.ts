import type { DenialBody } from "./denial.ts";
import type { UsagePeriodBody } from "./usage.ts";

type Cell = string | number | boolean | undefined;

/** Columns by title, in order. */
type Columns<Row> = Readonly<Record<string, (row: Row) => Cell>>;

const usageColumns: Columns<UsagePeriodBody> = {
  start: ({ start_ms: startMs }) => renderTime(startMs),
  policy: ({ policy }) => policy,
  limit: ({ limit }) => limit,
  subject: ({ subject }) => subject,
  decided: ({ decided }) => decided,
  allowed: ({ allowed }) => allowed,
  denied: ({ denied }) => denied,
  cost: ({ cost }) => cost,
  degraded: ({ degraded }) => degraded,
  shadow_denied: ({ shadow_denied: denied }) => denied,
  denials: ({ denials }) =>
    denials.map(({ reason, window, denied }) => `${[reason, window].filter(Boolean).join(" ")}: ${denied}`).join("; "),
};

const denialColumns: Columns<DenialBody> = {
  at: ({ at_ms: atMs }) => renderTime(atMs),
  since: ({ since_ms: sinceMs }) => renderTime(sinceMs),
  denials: ({ denials }) => denials,
  mixed: ({ mixed }) => mixed,
  subject: (denial) => denialSubjectText(denial),
  policy: ({ policy }) => policy,
  version: ({ version }) => version,
  limit: ({ limit }) => limit,
  window: ({ window }) => window,
  reason: ({ reason }) => reason,
  cost: ({ cost }) => cost,
  remaining: ({ remaining }) => remaining,
  capacity: ({ capacity }) => capacity,
  retry_after_ms: ({ retry_after_ms: retryAfterMs }) => retryAfterMs,
  degraded: ({ degraded }) => degraded,
  shadow: ({ shadow }) => shadow,
  request_id: ({ request_id: id }) => id,
  dimensions: ({ dimensions }) => JSON.stringify(dimensions),
  node: ({ node }) => node,
};

/** A table for spreadsheets, with a line of titles. */
export function renderUsageCsv(periods: readonly UsagePeriodBody[]): string {
  return renderCsv(usageColumns, periods);
}

export function renderDenialCsv(denials: readonly DenialBody[]): string {
  return renderCsv(denialColumns, denials);
}

/** Who was denied: `tenant=acme`, or `tenant=acme user=u1` if the limit counts by both. */
export function denialSubjectText({ by, dimensions }: Pick<DenialBody, "by" | "dimensions">): string {
  const known = by.filter((name) => dimensions[name] !== undefined);
  return known.map((name) => `${name}=${dimensions[name]}`).join(" ");
}

/** By RFC 4180: lines end with CR and LF, and a cell with a comma, a quote or a line break is quoted. */
function renderCsv<Row>(columns: Columns<Row>, rows: readonly Row[]): string {
  const titles = Object.keys(columns);
  const cells = Object.values(columns);
  const lines = rows.map((row) => cells.map((cell) => renderCell(cell(row))).join(","));
  return [titles.join(","), ...lines, ""].join("\r\n");
}

/** A spreadsheet takes what begins like this for a formula, and runs it. */
const formula = /^[\s]*[=+\-@\t\r\uff1d\uff0b\uff0d\uff20]/;

/** Callers choose names and values: a quote in front makes a formula a text. */
function renderCell(cell: Cell): string {
  if (cell === undefined) return "";
  if (typeof cell !== "string") return String(cell);
  const harmless = formula.test(cell) ? `'${cell}` : cell;
  return /[",\r\n]|^\s|\s$/.test(harmless) ? `"${harmless.replaceAll('"', '""')}"` : harmless;
}

function renderTime(ms: number): string {
  return new Date(ms).toISOString();
}
