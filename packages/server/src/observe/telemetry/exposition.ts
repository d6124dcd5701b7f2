/** One metric with all its series, read at each scrape. */
export interface Family {
  readonly name: string;
  readonly help: string;
  readonly type: "counter" | "gauge" | "histogram";
  /** Names of labels, in the order of every sample's values. */
  readonly labels: readonly string[];
  readonly samples: () => Iterable<Sample>;
}

export interface Sample {
  /** Values of the family's labels. */
  readonly labels: readonly string[];
  readonly value: number;
  /** For histograms: which of its series this is. */
  readonly part?: { readonly suffix: "_bucket"; readonly le: number } | { readonly suffix: "_sum" | "_count" };
}

/** A metric with one series, which has no labels. */
export function gauge(name: string, help: string, read: () => number): Family {
  return { name, help, type: "gauge", labels: [], samples: () => [{ labels: [], value: read() }] };
}

/** The same, for a number that only grows. */
export function counter(name: string, help: string, read: () => number): Family {
  return { name, help, type: "counter", labels: [], samples: () => [{ labels: [], value: read() }] };
}

export const expositionType = "text/plain; version=0.0.4; charset=utf-8";

/** Renders Prometheus' text format. `constant` are labels that every sample has. */
export function renderFamilies(families: Iterable<Family>, constant: Readonly<Record<string, string>> = {}): string {
  return [...renderSlices(families, constant)].join("");
}

/** This many lines are rendered in about two milliseconds. */
const linesPerSlice = 1_000;

/** The same in pieces, between which other work may have its turn. */
export function* renderSlices(
  families: Iterable<Family>,
  constant: Readonly<Record<string, string>> = {},
): Generator<string> {
  const common = Object.entries(constant)
    .map(([name, value]) => renderLabel(name, value))
    .join(",");
  let text = "";
  let lines = 0;
  for (const { name, help, type, labels: names, samples } of families) {
    text += `# HELP ${name} ${help.replaceAll("\\", "\\\\").replaceAll("\n", "\\n")}\n# TYPE ${name} ${type}\n`;
    // The series of a histogram come one after the other, with the same labels.
    let last: readonly string[] | undefined;
    let inside = common;
    for (const { labels, value, part } of samples()) {
      if (labels !== last) {
        last = labels;
        inside = common;
        for (let i = 0; i < labels.length; i++)
          inside += `${inside === "" ? "" : ","}${renderLabel(names[i]!, labels[i]!)}`;
      }
      const suffix = part === undefined ? "" : part.suffix;
      const le = part?.suffix === "_bucket" ? `${inside === "" ? "" : ","}le="${renderNumber(part.le)}"` : "";
      const braces = inside === "" && le === "" ? "" : `{${inside}${le}}`;
      text += `${name}${suffix}${braces} ${renderNumber(value)}\n`;
      lines += 1;
      if (lines % linesPerSlice > 0) continue;
      yield text;
      text = "";
    }
  }
  yield text;
}

/**
 * Joins several pages, such as those of several processes: each metric appears once, with the series of all. They must
 * differ in a label.
 */
export function joinExpositions(pages: readonly string[]): string {
  const families = new Map<string, string[]>();
  for (const page of pages) {
    // Lines end in a line feed alone: a label may contain other characters that end lines for a regular expression.
    for (const block of page.split(/(?<=\n)(?=# HELP )/)) {
      const [help = "", type = "", ...samples] = block.trimEnd().split("\n");
      if (help === "") continue;
      const [, , name = ""] = help.split(" ", 3);
      const known = families.get(name);
      if (known === undefined) families.set(name, [help, type, ...samples]);
      else known.push(...samples);
    }
  }
  return `${[...families.values()].flat().join("\n")}\n`;
}

function renderLabel(name: string, value: string): string {
  if (!/[\\\n"]/.test(value)) return `${name}="${value}"`;
  return `${name}="${value.replaceAll("\\", "\\\\").replaceAll("\n", "\\n").replaceAll('"', '\\"')}"`;
}

function renderNumber(value: number): string {
  if (value === Number.POSITIVE_INFINITY) return "+Inf";
  if (value === Number.NEGATIVE_INFINITY) return "-Inf";
  return String(value);
}
