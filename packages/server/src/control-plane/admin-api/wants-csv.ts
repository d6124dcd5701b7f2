import type { RequestHeaders } from "../../data-plane/transports/http/exchange.ts";

/** Whether an answer should be CSV: as `format` says, else if `Accept` prefers it to JSON. */
export function wantsCsv(format: "json" | "csv" | undefined, { accept }: RequestHeaders): boolean {
  if (format !== undefined) return format === "csv";
  const ranges = parseAccept(String(accept ?? ""));
  const csv = findRange(ranges, "text/csv");
  const json = findRange(ranges, "application/json");
  if (csv === undefined || csv.quality === 0) return false;
  if (json === undefined || csv.quality !== json.quality) return csv.quality > (json?.quality ?? 0);
  // Between equals, the one that is named wins; between two that are, JSON.
  return csv.depth > json.depth;
}

interface MediaRange {
  readonly type: string;
  readonly quality: number;
}

function parseAccept(accept: string): readonly MediaRange[] {
  return accept
    .toLowerCase()
    .split(",", 32)
    .map((range) => {
      const [type = "", ...parameters] = range.split(";").map((part) => part.trim());
      const quality = parameters.find((parameter) => parameter.startsWith("q="))?.slice(2) ?? "1";
      return { type, quality: Math.min(1, Number(quality) || 0) };
    });
}

/** The most specific range that a type is in. */
function findRange(
  ranges: readonly MediaRange[],
  type: string,
): { readonly quality: number; readonly depth: number } | undefined {
  const names = [type, `${type.split("/")[0]}/*`, "*/*"];
  for (const [i, name] of names.entries()) {
    const range = ranges.find((one) => one.type === name);
    if (range !== undefined) return { quality: range.quality, depth: names.length - i };
  }
  return undefined;
}
