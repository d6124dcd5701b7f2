import type { SimulatedRequest } from "../replay/simulated-request.ts";
import type { FieldMap } from "./field-map.ts";

/** Reads the lines of one log. */
export interface LineParser {
  /** The dimensions that it can find. */
  readonly carried: readonly string[];
  /** The request in `bytes` from `start` up to `end`, one line without its end; undefined if there is none. */
  parse(bytes: Buffer, start: number, end: number): SimulatedRequest | undefined;
}

export interface LineParserOptions {
  readonly map: FieldMap;
  /** Statuses that mean that a request was denied. */
  readonly deniedStatuses: ReadonlySet<number>;
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
