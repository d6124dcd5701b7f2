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
const ticks = 4;

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
  const most = [...points, ...lines].reduce((sum, { y }) => Math.max(sum, y), 0) || 1;
  const spanX = along(last) - along(first) || 1;
  const placeX = (x: number): number => left + ((along(x) - along(first)) / spanX) * (width - left - right);
  const placeY = (y: number): number => height - bottom - (y / most) * (height - top - bottom);
  const parts = [
    ...renderTicks(most, placeY, renderY),
    ...[first, last].map((x, i) => text(placeX(x), height - 10, renderX(x), i === 0 ? "start" : "end")),
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

function renderTicks(most: number, placeY: (y: number) => number, renderY: (y: number) => string): readonly string[] {
  return Array.from({ length: ticks + 1 }, (_, i) => {
    const y = (most * i) / ticks;
    const place = at(placeY(y));
    return `<line class="grid" x1="${left}" x2="${width - right}" y1="${place}" y2="${place}"/>${text(left - 6, placeY(y) + 4, renderY(y), "end")}`;
  });
}

function text(x: number, y: number, what: string, anchor: "start" | "end"): string {
  return `<text x="${at(x)}" y="${at(y)}" text-anchor="${anchor}">${escapeHtml(what)}</text>`;
}

function at(place: number): string {
  return place.toFixed(1);
}

export function escapeHtml(raw: string): string {
  return raw.replaceAll(/[&<>"']/g, (sign) => `&#${sign.charCodeAt(0)};`);
}
