import "uplot/dist/uPlot.min.css";
import { type ReactNode, useEffect, useRef } from "react";
import uPlot from "uplot";
import { formatCompact } from "../format/numbers.ts";
import { formatMoment } from "../format/times.ts";
import { useTheme } from "./theme.ts";

export interface ChartSeries {
  readonly label: string;
  /** One value per moment; null is a gap. */
  readonly values: readonly (number | null)[];
  /** A token: `allowed`, `denied`, `degraded`, `accent`, `warning`. */
  readonly tone: string;
  /** Drawn on top of those before it, as areas. Otherwise a line. */
  readonly stacked?: boolean;
  readonly dashed?: boolean;
}

/** A line across the chart, and what is above it: a limit, with the share of it that warns. */
export interface ChartBand {
  readonly label: string;
  readonly at: number;
  readonly warnAt?: number | undefined;
}

export interface ChartProps {
  readonly label: string;
  /** Epoch milliseconds, ascending. */
  readonly times: readonly number[];
  readonly series: readonly ChartSeries[];
  readonly band?: ChartBand | undefined;
  readonly height?: number;
  readonly format?: (value: number) => string;
  /** A part was selected with the pointer. */
  readonly onSelect?: (fromMs: number, toMs: number) => void;
}

/** uPlot in React: made anew when the shape of the chart changes, and otherwise only fed. */
export default function ChartCanvas(props: ChartProps): ReactNode {
  const { label, times, series, height = 220 } = props;
  const host = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot>(undefined);
  const latest = useRef(props);
  latest.current = props;
  const { shown: theme } = useTheme();
  const shape = JSON.stringify([
    series.map(({ label, tone, stacked, dashed }) => [label, tone, stacked, dashed]),
    height,
    theme,
  ]);

  // biome-ignore lint/correctness/useExhaustiveDependencies: the shape stands for all that options are made of.
  useEffect(() => {
    const element = host.current!;
    const made = new uPlot(makeOptions(latest, element.clientWidth, height), alignData(latest.current), element);
    plot.current = made;
    const observer = new ResizeObserver(() => made.setSize({ width: element.clientWidth, height }));
    observer.observe(element);
    return () => {
      observer.disconnect();
      made.destroy();
      plot.current = undefined;
    };
  }, [shape]);

  // biome-ignore lint/correctness/useExhaustiveDependencies: read through `latest`.
  useEffect(() => {
    plot.current?.setData(alignData(latest.current));
  }, [times, series, props.band]);

  return (
    <figure aria-label={label} className="m-0 min-w-0">
      <div className="w-full min-w-0" ref={host} />
      <ChartLegend {...props} />
      <figcaption className="sr-only">{describe(props)}</figcaption>
    </figure>
  );
}

function ChartLegend({ series, band }: ChartProps): ReactNode {
  return (
    <ul className="mt-1 flex flex-wrap gap-x-4 gap-y-1 text-xs text-ink-faint">
      {series.map(({ label, tone, dashed }) => (
        <li className="flex items-center gap-1.5" key={label}>
          <svg aria-hidden="true" height="8" width="14">
            <path
              d="M0 4H14"
              stroke={`var(--${tone})`}
              strokeDasharray={dashed === true ? "3 2" : undefined}
              strokeWidth={dashed === true ? 2 : 5}
            />
          </svg>
          {label}
        </li>
      ))}
      {band !== undefined && (
        <li className="flex items-center gap-1.5">
          <svg aria-hidden="true" height="8" width="14">
            <path d="M0 4H14" stroke="var(--ink-soft)" strokeWidth={1.5} />
          </svg>
          {band.label}
        </li>
      )}
    </ul>
  );
}

/** For screen readers: totals and peaks. */
function describe({ series, times, band }: ChartProps): string {
  if (times.length === 0) return "There is no data.";
  const parts = series.map(({ label, values }) => {
    const numbers = values.filter((value) => value !== null);
    return `${label}: at most ${formatCompact(Math.max(0, ...numbers))}, latest ${formatCompact(numbers.at(-1) ?? 0)}`;
  });
  const limit = band === undefined ? [] : [`${band.label} at ${formatCompact(band.at)}`];
  return `${[...parts, ...limit].join("; ")}. From ${formatMoment(times[0]!)} to ${formatMoment(times.at(-1)!)}.`;
}

function alignData({ times, series }: ChartProps): uPlot.AlignedData {
  const below = times.map(() => 0);
  const columns = series.map(({ values, stacked = false }) => {
    if (!stacked) return [...values];
    return values.map((value, at) => {
      below[at] = below[at]! + (value ?? 0);
      return value === null ? null : below[at]!;
    });
  });
  return [times.map((ms) => ms / 1_000), ...columns];
}

function makeOptions(latest: { readonly current: ChartProps }, width: number, height: number): uPlot.Options {
  const { series } = latest.current;
  const token = (name: string) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
  const axis = {
    stroke: token("ink-faint"),
    font: "11px system-ui, sans-serif",
    grid: { stroke: token("line"), width: 1 },
    ticks: { show: false },
  };
  const bands = series.flatMap((one, at): uPlot.Band[] => {
    const below = at > 0 && series[at - 1]?.stacked === true;
    return one.stacked === true && below ? [{ series: [at + 1, at], fill: alpha(token(one.tone), 0.75) }] : [];
  });
  return {
    width,
    height,
    padding: [10, 30, 0, 0],
    legend: { show: false },
    cursor: {
      y: false,
      points: { size: 6 },
      drag: { x: latest.current.onSelect !== undefined, y: false, setScale: false },
    },
    scales: {
      y: { range: (_plot, _low, high) => [0, Math.max(1e-9, high, highest(latest.current.band)) * 1.08] },
    },
    axes: [
      { ...axis, size: 34, values: (_plot, splits, _axis, _space, step) => formatTimes(splits, step) },
      {
        ...axis,
        size: 56,
        values: (_plot, splits) => splits.map((value) => (latest.current.format ?? formatCompact)(value)),
      },
    ],
    series: [
      {},
      ...series.map((one, at): uPlot.Series => {
        const above = one.stacked === true && series[at - 1]?.stacked === true;
        const first = one.stacked === true && !above;
        return {
          label: one.label,
          // Where areas are on top of one another, the lowest alone has an outline: another would say that there is something above it.
          stroke: above ? "transparent" : token(one.tone),
          width: 1.5,
          points: { show: false },
          ...(one.dashed === true && { dash: [5, 4] }),
          ...(first && { fill: alpha(token(one.tone), 0.28) }),
        };
      }),
    ],
    bands,
    hooks: {
      drawClear: [(plot) => drawBand(plot, latest.current.band, token)],
      setSelect: [(plot) => reportSelection(plot, latest.current)],
      init: [(plot) => attachTooltip(plot, latest)],
    },
  };
}

const clock = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit" });
const clockWithSeconds = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit", second: "2-digit" });
const day = new Intl.DateTimeFormat(undefined, { day: "numeric", month: "short" });

/** As the reader's language writes times; where a day begins, its date stands in place of midnight. */
function formatTimes(splits: readonly number[], stepSeconds: number): string[] {
  return splits.map((seconds) => {
    const at = new Date(seconds * 1_000);
    const isMidnight = at.getHours() === 0 && at.getMinutes() === 0 && at.getSeconds() === 0;
    if (isMidnight || stepSeconds >= 86_400) return day.format(at);
    return (stepSeconds < 60 ? clockWithSeconds : clock).format(at);
  });
}

function highest(band: ChartBand | undefined): number {
  return band?.at ?? 0;
}

function alpha(color: string, share: number): string {
  return `color-mix(in srgb, ${color} ${share * 100}%, transparent)`;
}

function drawBand(plot: uPlot, band: ChartBand | undefined, token: (name: string) => string): void {
  if (band === undefined) return;
  const { ctx, bbox } = plot;
  const y = plot.valToPos(band.at, "y", true);
  ctx.save();
  if (band.warnAt !== undefined) {
    const from = plot.valToPos(band.at * band.warnAt, "y", true);
    ctx.fillStyle = alpha(token("warning"), 0.14);
    ctx.fillRect(bbox.left, y, bbox.width, from - y);
  }
  ctx.fillStyle = alpha(token("denied"), 0.08);
  ctx.fillRect(bbox.left, bbox.top, bbox.width, Math.max(0, y - bbox.top));
  ctx.strokeStyle = token("ink-soft");
  ctx.lineWidth = 1.5 * devicePixelRatio;
  ctx.beginPath();
  ctx.moveTo(bbox.left, y);
  ctx.lineTo(bbox.left + bbox.width, y);
  ctx.stroke();
  ctx.restore();
}

function reportSelection(plot: uPlot, { onSelect }: ChartProps): void {
  const { left, width } = plot.select;
  if (onSelect === undefined || width < 4) return;
  const at = (x: number) => plot.posToVal(x, "x") * 1_000;
  onSelect(at(left), at(left + width));
  plot.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
}

/** Follows the pointer with the numbers under it. */
function attachTooltip(plot: uPlot, latest: { readonly current: ChartProps }): void {
  const tip = document.createElement("div");
  tip.className =
    "pointer-events-none absolute z-10 hidden rounded-md border border-line bg-raised px-2 py-1 text-xs whitespace-pre text-ink shadow-floating";
  plot.over.append(tip);
  const follow = () => {
    const { idx, left = -1, top = 0 } = plot.cursor;
    const { times, series, band, format = formatCompact } = latest.current;
    const at = typeof idx === "number" ? times[idx] : undefined;
    tip.classList.toggle("hidden", at === undefined || left < 0);
    if (at === undefined || left < 0) return;
    const lines = series.map(({ label, values }) => {
      const value = values[idx!];
      return `${label}  ${value === null || value === undefined ? "–" : format(value)}`;
    });
    const limit = band === undefined ? [] : [`${band.label}  ${format(band.at)}`];
    tip.textContent = [formatMoment(at), ...lines, ...limit].join("\n");
    const beyond = left > plot.over.clientWidth / 2;
    tip.style.left = beyond ? "" : `${left + 14}px`;
    tip.style.right = beyond ? `${plot.over.clientWidth - left + 14}px` : "";
    tip.style.top = `${Math.max(0, Math.min(top, plot.over.clientHeight - tip.clientHeight))}px`;
  };
  plot.over.addEventListener("mousemove", () => requestAnimationFrame(follow));
  plot.over.addEventListener("mouseleave", () => tip.classList.add("hidden"));
}
