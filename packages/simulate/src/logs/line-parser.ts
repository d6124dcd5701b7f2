import type { RecordingFacts } from "../replay/recording-lines.ts";
import type { SimulatedRequest } from "../replay/simulated-request.ts";
import type { FieldMap } from "./field-map.ts";

/** A line that can be read, and is not about a request. */
export const noRequest = "no request";

/** Undefined if the line cannot be read. */
export type ParsedLine = SimulatedRequest | typeof noRequest | undefined;

/** Reads the lines of one log. */
export interface LineParser {
  /** The dimensions that it can find. */
  readonly carried: readonly string[];
  /** What a recording says about itself. Undefined: it is a log. */
  readonly recording?: RecordingFacts | undefined;
  /** The request in `bytes` from `start` up to `end`, one line without its end. */
  parse(bytes: Buffer, start: number, end: number): ParsedLine;
}

export interface LineParserOptions {
  readonly map: FieldMap;
  /** Statuses that mean that a request was denied. */
  readonly deniedStatuses: ReadonlySet<number>;
  /** Whether it is the only log. Absent: it is not. */
  readonly isOnly?: boolean | undefined;
}

/** Names in a map that are no dimensions. */
const notDimensions: ReadonlySet<string> = new Set(["time", "status", "cost"]);
const usualDimensions = ["ip", "endpoint", "method"];

/** What a parser carries that finds the usual dimensions, and those of a map. */
export function listCarried(map: FieldMap): readonly string[] {
  return [...new Set([...usualDimensions, ...map.keys()])].filter((name) => !notDimensions.has(name));
}

/** What a line says, as texts; `-` and an empty text say nothing. */
export interface LineValues {
  readonly time: unknown;
  readonly ip: string | undefined;
  readonly method: string | undefined;
  /** The whole target, with its query. */
  readonly target: string | undefined;
  readonly status: number;
}
