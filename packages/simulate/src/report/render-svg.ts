/** A line or an area of a plot. */
export interface PlotSeries {
  readonly name: string;
  /** Of the page's style. */
  readonly style: "demand" | "denied" | "denied-now" | "curve";
  readonly points: readonly PlotPoint[];
  readonly area?: boolean;
}

export interface PlotPoint {
  readonly x: number;
  readonly y: number;
}

export interface PlotOptions {
  readonly title: string;
  readonly series: readonly PlotSeries[];
  /** Horizontal lines, such as a limit. */
  readonly lines?: readonly { readonly y: number; readonly name: string }[];
  /** Vertical lines, such as a knee. */
  readonly marks?: readonly { readonly x: number; readonly name: string }[];
  readonly renderX: (x: number) => string;
  readonly renderY: (y: number) => string;
  /** Whether x is shown by its logarithm. */
  readonly logX?: boolean;
}

const width = 900;
const height = 260;
const left = 64;
const right = 12;
const top = 14;
const bottom = 34;
/** About so many lines across, at round numbers. */
const ticks = 4;
const labelsAlong = 5;

/** A plot as inline SVG, styled by the page that it is in. */
export function renderPlot(options: PlotOptions): string {
  const { series, lines = [], marks = [], renderX, renderY, logX = false } = options;
  const along = (x: number): number => (logX ? Math.log(x) : x);
  const points = series.flatMap((one) => one.points);
  if (points.length === 0) return "";
  const xs = points.map(({ x }) => x);
  const [first, last] = [
    xs.reduce((one, other) => Math.min(one, other)),
    xs.reduce((one, other) => Math.max(one, other)),
  ];
  const highest = [...points, ...lines].reduce((sum, { y }) => Math.max(sum, y), 0) || 1;
  const step = roundStep(highest / ticks);
  const most = Math.ceil(highest / step - 1e-9) * step;
  const spanX = along(last) - along(first) || 1;
  const placeX = (x: number): number => left + ((along(x) - along(first)) / spanX) * (width - left - right);
  const placeY = (y: number): number => height - bottom - (y / most) * (height - top - bottom);
  const parts = [
    ...renderTicks(most, step, placeY, renderY),
    ...listAlong(first, last, logX).map((x, i, all) =>
      text(placeX(x), height - 10, renderX(x), i === 0 ? "start" : i === all.length - 1 ? "end" : "middle"),
    ),
    ...series.map((one) => renderSeries(one, placeX, placeY)),
    ...lines.map(
      ({ y, name }) =>
        `<line class="limit" x1="${left}" x2="${width - right}" y1="${at(placeY(y))}" y2="${at(placeY(y))}"/>${text(width - right, placeY(y) - 4, name, "end")}`,
    ),
    ...marks.map(
      ({ x, name }) =>
        `<line class="mark" x1="${at(placeX(x))}" x2="${at(placeX(x))}" y1="${top}" y2="${height - bottom}"/>${text(placeX(x) + 4, top + 10, name, "start")}`,
    ),
  ];
  const legend = series.map(({ name, style }) => `<span class="key ${style}"></span>${escapeHtml(name)}`).join(" ");
  return `<figure><figcaption>${escapeHtml(options.title)} <small>${legend}</small></figcaption>
<svg viewBox="0 0 ${width} ${height}" role="img" aria-label="${escapeHtml(options.title)}">${parts.join("")}</svg></figure>`;
}

function renderSeries(
  { points, style, area = false }: PlotSeries,
  placeX: (x: number) => number,
  placeY: (y: number) => number,
): string {
  const line = points.map(({ x, y }) => `${at(placeX(x))},${at(placeY(y))}`).join(" ");
  if (!area) return `<polyline class="${style}" points="${line}"/>`;
  const ends = [points.at(-1)!, points[0]!].map(({ x }) => `${at(placeX(x))},${at(placeY(0))}`).join(" ");
  return `<polygon class="${style}" points="${line} ${ends}"/>`;
}

/** The places of labels along the x axis: evenly between the ends, or 1 between those of a logarithm. */
function listAlong(first: number, last: number, logX: boolean): readonly number[] {
  if (last <= first) return [first];
  if (logX) return first < 1 && last > 1 ? [first, 1, last] : [first, last];
  return Array.from({ length: labelsAlong }, (_, i) => first + ((last - first) * i) / (labelsAlong - 1));
}

/** 1, 2 or 5 times a power of ten, not below `least`. */
function roundStep(least: number): number {
  const power = 10 ** Math.floor(Math.log10(least));
  return [1, 2, 5, 10].map((factor) => factor * power).find((step) => step >= least * (1 - 1e-9)) ?? 10 * power;
}

function renderTicks(
  most: number,
  step: number,
  placeY: (y: number) => number,
  renderY: (y: number) => string,
): readonly string[] {
  return Array.from({ length: Math.round(most / step) + 1 }, (_, i) => {
    const y = step * i;
    const place = at(placeY(y));
    return `<line class="grid" x1="${left}" x2="${width - right}" y1="${place}" y2="${place}"/>${text(left - 6, placeY(y) + 4, renderY(y), "end")}`;
  });
}

function text(x: number, y: number, what: string, anchor: "start" | "middle" | "end"): string {
  return `<text x="${at(x)}" y="${at(y)}" text-anchor="${anchor}">${escapeHtml(what)}</text>`;
}

function at(place: number): string {
  return place.toFixed(1);
}

export function escapeHtml(raw: string): string {
  return raw.replaceAll(/[&<>"']/g, (sign) => `&#${sign.charCodeAt(0)};`);
}
