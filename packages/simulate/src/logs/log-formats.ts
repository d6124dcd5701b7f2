import { CombinedParser } from "./combined-parser.ts";
import { anyJson, JsonParser, jsonFormats } from "./json-format.ts";
import type { LineParser, LineParserOptions } from "./line-parser.ts";
import { parseRecordingHead, RecordingParser } from "./recording-parser.ts";
import { albFormat, combinedFormat, envoyFormat, TextParser } from "./text-format.ts";

export const logFormats = [
  "combined",
  "envoy",
  "envoy-json",
  "alb",
  "caddy",
  "traefik",
  "cloudflare",
  "json",
  "sluice",
] as const;

/** The form of a log's lines. `combined` also reads common logs, and Traefik's in text; `traefik` its JSON. `sluice` is a
 * recording of Sluice itself. */
export type LogFormat = (typeof logFormats)[number];

/** `line` is the first one, which begins a recording. Throws a `RangeError` if it cannot begin such a log. */
export function createLineParser(format: LogFormat, options: LineParserOptions, line: string = ""): LineParser {
  switch (format) {
    case "sluice": {
      const head = parseRecordingHead(line);
      if (head === undefined) throw new RangeError("a recording begins with its head, and this one does not");
      if (options.map.size > 0) throw new RangeError("a recording has dimensions by name, and takes no map");
      return new RecordingParser(head, options.isOnly === true);
    }
    case "combined":
      return options.map.size === 0 ? new CombinedParser(options) : new TextParser(combinedFormat, options);
    case "envoy":
      return new TextParser(envoyFormat, options);
    case "alb":
      return new TextParser(albFormat, options);
    default:
      return new JsonParser(jsonFormats.find(({ name }) => name === format) ?? anyJson, options);
  }
}

/** The format of a line, by its looks. Lines of other formats than JSON, Envoy's and AWS's are read as combined. */
export function detectFormat(line: string): LogFormat {
  if (line.startsWith("{")) return detectJson(line);
  if (/^\[\d{4}-\d\d-\d\dT[^\]]+\] "/.test(line)) return "envoy";
  if (/^(?:https?|h2|grpcs|wss?) \d{4}-\d\d-\d\dT\S+ \S+ \S+ /.test(line)) return "alb";
  return "combined";
}

function detectJson(line: string): LogFormat {
  let parsed: unknown;
  try {
    parsed = JSON.parse(line);
  } catch {
    return "json";
  }
  if (typeof parsed !== "object" || parsed === null) return "json";
  if (Object.hasOwn(parsed, "sluice_recording")) return "sluice";
  const has = (...names: readonly string[]): boolean => names.every((name) => Object.hasOwn(parsed, name));
  if (has("EdgeStartTimestamp")) return "cloudflare";
  if (has("RequestMethod", "RequestPath")) return "traefik";
  if (has("start_time") && (has("method") || has(":method"))) return "envoy-json";
  const { request } = parsed as { readonly request?: unknown };
  return has("ts") && typeof request === "object" ? "caddy" : "json";
}
