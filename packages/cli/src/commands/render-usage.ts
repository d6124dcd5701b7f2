import type { UsagePeriodBody } from "@sluice/protocol/admin";
import type { Paint } from "../terminal/paint.ts";
import { barMarks, renderBars } from "../terminal/render-bars.ts";
import { renderTable } from "../terminal/render-table.ts";

export interface UsageTotals {
  readonly decided: number;
  readonly allowed: number;
  readonly denied: number;
  readonly cost: number;
  readonly degraded: number;
  readonly shadow_denied: number;
}

const noUsage: UsageTotals = { decided: 0, allowed: 0, denied: 0, cost: 0, degraded: 0, shadow_denied: 0 };

/** The most lines of a plot: more do not fit on a screen. Longer times have several periods in a line. */
const mostLines = 62;

export function sumPeriods(periods: readonly UsageTotals[]): UsageTotals {
  return periods.reduce(
    (so, one) => ({
      decided: so.decided + one.decided,
      allowed: so.allowed + one.allowed,
      denied: so.denied + one.denied,
      cost: so.cost + one.cost,
      degraded: so.degraded + one.degraded,
      shadow_denied: so.shadow_denied + one.shadow_denied,
    }),
    noUsage,
  );
}

/** One line a period, also for those without decisions. */
export function renderUsagePlot(
  periods: readonly UsagePeriodBody[],
  { fromMs, toMs, stepMs }: { readonly fromMs: number; readonly toMs: number; readonly stepMs: number },
  width: number,
  paint: Paint,
): string {
  const count = Math.max(1, Math.ceil((toMs - fromMs) / stepMs));
  const perLine = Math.ceil(count / mostLines);
  const lineMs = perLine * stepMs;
  const lines = Array.from({ length: Math.ceil(count / perLine) }, (_, i) => fromMs + i * lineMs);
  const sums = new Map<number, UsagePeriodBody[]>();
  for (const period of periods) {
    const index = Math.floor((period.start_ms - fromMs) / lineMs);
    sums.set(index, [...(sums.get(index) ?? []), period]);
  }
  const bars = lines.map((startMs, index) => {
    const { allowed, denied } = sumPeriods(sums.get(index) ?? []);
    return { title: renderStart(startMs, stepMs), good: allowed, bad: denied, counts: [allowed, denied] as const };
  });
  const widths = [0, 1].map((i) => Math.max(...bars.map(({ counts }) => String(counts[i]).length)));
  const marks = barMarks(paint);
  const legend = `${paint.good(marks.good)} allowed, ${paint.bad(marks.bad)} denied`;
  const each = perLine === 1 ? "" : `; a line is ${perLine} periods`;
  const plot = renderBars(
    bars.map(({ counts: [allowed, denied], ...bar }) => ({
      ...bar,
      text: `${String(allowed).padStart(widths[0]!)} ${denied === 0 ? "" : `${String(denied).padStart(widths[1]!)} denied`}`.trimEnd(),
    })),
    width,
    paint,
  );
  return `${plot}${legend}${each}\n`;
}

function renderStart(startMs: number, stepMs: number): string {
  const text = new Date(startMs).toISOString();
  return stepMs >= 86_400_000 ? text.slice(0, 10) : text.slice(5, 16).replace("T", " ");
}

/** Sums over the whole time, most decisions first. */
export function renderUsageGroups(
  periods: readonly UsagePeriodBody[],
  by: readonly ("policy" | "limit" | "subject")[],
  width: number | undefined,
): string {
  const groups = new Map<string, UsagePeriodBody[]>();
  for (const period of periods) {
    const key = JSON.stringify(by.map((field) => period[field]));
    const group = groups.get(key);
    if (group === undefined) groups.set(key, [period]);
    else group.push(period);
  }
  const rows = [...groups]
    .map(([key, group]) => ({ names: JSON.parse(key) as string[], sum: sumPeriods(group) }))
    .sort((a, b) => b.sum.decided - a.sum.decided);
  const numbers = ["decided", "allowed", "denied", "share", "cost"].map((title) => ({
    title: title === "share" ? "" : title,
    align: "right" as const,
  }));
  return renderTable(
    [...by.map((title) => ({ title, flexible: true })), ...numbers],
    rows.map(({ names, sum }) => [
      ...names.map((name) => (name === "" ? "-" : name)),
      ...[String(sum.decided), String(sum.allowed), String(sum.denied), renderShare(sum), String(sum.cost)],
    ]),
    width,
  );
}

/** The last line: all of it in numbers, and what denied most. */
export function renderUsageTotal(periods: readonly UsagePeriodBody[]): string {
  const sum = sumPeriods(periods);
  const also = [
    ...(sum.degraded > 0 ? [`${sum.degraded} decided without the counters`] : []),
    ...(sum.shadow_denied > 0 ? [`${sum.shadow_denied} would be denied by policies in shadow mode`] : []),
  ];
  const total = `Total: ${sum.decided} decided, ${sum.allowed} allowed, ${sum.denied} denied (${renderShare(sum)}), cost ${sum.cost}.`;
  return [total, ...renderDeniedBy(periods), ...also.map((text) => `${text}.`)].join(" ");
}

function renderDeniedBy(periods: readonly UsagePeriodBody[]): readonly string[] {
  const sums = new Map<string, number>();
  for (const { reason, window, denied } of periods.flatMap((period) => period.denials)) {
    const name = window === "" ? reason : `${reason} of ${window}`;
    sums.set(name, (sums.get(name) ?? 0) + denied);
  }
  const first = [...sums].sort(([, a], [, b]) => b - a).slice(0, 3);
  return first.length === 0 ? [] : [`Denied: ${first.map(([name, denied]) => `${denied} ${name}`).join(", ")}.`];
}

function renderShare({ denied, decided }: UsageTotals): string {
  return decided === 0 ? "-" : `${((100 * denied) / decided).toFixed(1)} %`;
}
