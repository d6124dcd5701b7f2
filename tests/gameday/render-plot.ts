/** A plot over time, as a separate file that can be read in light and in dark. */
export interface Plot {
  /** The name of its file, without its extension. */
  readonly name: string;
  readonly title: string;
  readonly x: string;
  readonly y: string;
  readonly series: readonly PlotSeries[];
  /** Moments: a server is killed, a switch is turned. */
  readonly marks?: readonly { readonly x: number; readonly name: string }[];
  /** Levels, such as a limit. */
  readonly levels?: readonly { readonly y: number; readonly name: string }[];
}

export interface PlotSeries {
  readonly name: string;
  readonly points: readonly (readonly [x: number, y: number])[];
}

const [width, height] = [820, 300];
const [left, right, top, bottom] = [62, 16, 56, 44];
const ticks = 5;
/** More points than pixels show nothing more; each keeps the highest of its stretch. */
const mostPoints = 240;

const style = `
svg { font: 12px system-ui, sans-serif; background: #fff }
.ground { fill: #fff } text { fill: #374151 } .title { font-size: 14px; font-weight: 600; fill: #111827 }
.grid { stroke: #e5e7eb } .axis { stroke: #9ca3af } .mark { stroke: #9ca3af; stroke-dasharray: 3 3 }
.level { stroke: #b91c1c; stroke-dasharray: 7 4 } .leveled { fill: #b91c1c }
.series { fill: none; stroke-width: 2; stroke-linejoin: round }
.s0 { stroke: #1d4ed8 } .s1 { stroke: #c2410c } .s2 { stroke: #047857 } .s3 { stroke: #7e22ce }
@media (prefers-color-scheme: dark) {
svg { background: #0d1117 } .ground { fill: #0d1117 } text { fill: #c9d1d9 } .title { fill: #f0f6fc }
.grid { stroke: #21262d } .axis { stroke: #6e7681 } .mark { stroke: #6e7681 } .level { stroke: #ff7b72 } .leveled { fill: #ff7b72 }
.s0 { stroke: #79c0ff } .s1 { stroke: #ffa657 } .s2 { stroke: #56d364 } .s3 { stroke: #d2a8ff }
}`;

export function renderPlot({ title, x, y, series, marks = [], levels = [] }: Plot): string {
  const points = series.flatMap((one) => one.points);
  const xs = [...points.map(([at]) => at), ...marks.map((mark) => mark.x)];
  const [first, last] = [xs.reduce((a, b) => Math.min(a, b), 0), xs.reduce((a, b) => Math.max(a, b), 1)];
  const highest = [...points.map(([, value]) => value), ...levels.map((level) => level.y)].reduce(
    (a, b) => Math.max(a, b),
    0,
  );
  const [stepX, stepY] = [roundStep((last - first) / ticks), roundStep((highest || 1) / ticks)];
  const most = Math.ceil((highest || 1) / stepY - 1e-9) * stepY;
  const placeX = (at: number): number => left + ((at - first) / (last - first)) * (width - left - right);
  const placeY = (value: number): number => height - bottom - (value / most) * (height - top - bottom);
  const across = (value: number, kind: string): string => {
    const place = fixed(placeY(value));
    return `<path class="${kind}" d="M${left} ${place}H${width - right}"/>`;
  };
  const parts = [
    text(left - 46, 20, title, "start", "title"),
    ...renderLegend(series),
    ...steps(0, most, stepY).map(
      (value) => across(value, value === 0 ? "axis" : "grid") + text(left - 8, placeY(value) + 4, short(value), "end"),
    ),
    ...steps(first, last, stepX).map((at) => text(placeX(at), height - bottom + 18, short(at), "middle")),
    text(width - right, height - 8, x, "end"),
    text(left - 46, top - 10, y, "start"),
    ...marks.map(({ x: at, name }, index) => {
      const place = fixed(placeX(at));
      const end = placeX(at) > width - 160;
      const label = text(placeX(at) + (end ? -4 : 4), top + 10 + (index % 2) * 15, name, end ? "end" : "start");
      return `<path class="mark" d="M${place} ${top}V${height - bottom}"/>${label}`;
    }),
    ...series.map((one, index) => {
      const line = thin(one.points).map(([at, value]) => `${fixed(placeX(at))} ${fixed(placeY(value))}`);
      return `<path class="series s${index % 4}" d="M${line.join("L")}"/>`;
    }),
    ...levels.map(
      ({ y: value, name }) =>
        across(value, "level") +
        text(width - right - 4, placeY(value) + (placeY(value) < top + 10 ? 15 : -5), name, "end", "leveled"),
    ),
  ];
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" role="img" aria-label="${escapeXml(title)}">`,
    `<style>${style}\n</style>`,
    `<rect class="ground" width="${width}" height="${height}"/>`,
    ...parts,
    "</svg>\n",
  ].join("\n");
}

function renderLegend(series: readonly PlotSeries[]): readonly string[] {
  const parts: string[] = [];
  let at = width - right;
  for (const [index, { name }] of [...series.entries()].toReversed()) {
    at -= name.length * 6.4;
    parts.push(text(at, top - 10, name, "start"));
    at -= 24;
    parts.push(`<path class="series s${index % 4}" d="M${fixed(at)} ${top - 14}h18"/>`);
    at -= 14;
  }
  return parts;
}

function thin(points: PlotSeries["points"]): PlotSeries["points"] {
  if (points.length <= mostPoints) return points;
  const size = points.length / mostPoints;
  return Array.from({ length: mostPoints }, (_, i) =>
    points
      .slice(Math.floor(i * size), Math.floor((i + 1) * size))
      .reduce((one, other) => (other[1] > one[1] ? other : one)),
  );
}

function steps(from: number, to: number, step: number): readonly number[] {
  const start = Math.ceil(from / step - 1e-9);
  return Array.from({ length: Math.floor(to / step + 1e-9) - start + 1 }, (_, i) => (start + i) * step);
}

/** 1, 2 or 5 times a power of ten, not below `least`. */
function roundStep(least: number): number {
  const power = 10 ** Math.floor(Math.log10(least));
  return [1, 2, 5, 10].map((factor) => factor * power).find((step) => step >= least * (1 - 1e-9)) ?? 10 * power;
}

function short(value: number): string {
  if (Math.abs(value) >= 10_000) return `${Number((value / 1000).toFixed(1))}k`;
  return `${Number(value.toFixed(4))}`;
}

function text(x: number, y: number, what: string, anchor: "start" | "middle" | "end", kind?: string): string {
  const named = kind === undefined ? "" : ` class="${kind}"`;
  return `<text x="${fixed(x)}" y="${fixed(y)}" text-anchor="${anchor}"${named}>${escapeXml(what)}</text>`;
}

function fixed(place: number): string {
  return `${Number(place.toFixed(1))}`;
}

function escapeXml(raw: string): string {
  return raw.replaceAll(/[&<>"]/g, (sign) => `&#${sign.charCodeAt(0)};`);
}
