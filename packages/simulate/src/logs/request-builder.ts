import type { SimulatedRequest } from "../replay/simulated-request.ts";
import type { LineParserOptions, LineValues } from "./line-parser.ts";
import { readTime } from "./read-time.ts";
import { findPath, findQuery, lastAddress } from "./request-target.ts";

/** Finds what a map asks of a line; undefined if the line does not say. */
export type FindMapped = (name: string) => unknown;

/** The request of a line whose format says the usual values, and whose map may replace them or add to them. */
export function buildRequest(
  usual: LineValues,
  { map, deniedStatuses }: LineParserOptions,
  findMapped: FindMapped,
): SimulatedRequest | undefined {
  const mapped = (name: string): string | undefined => {
    const source = map.get(name);
    if (source === undefined) return undefined;
    return readText(source.kind === "query" ? findQuery(usual.target ?? "", source.name) : findMapped(name));
  };
  const time = readTime(map.has("time") ? findMapped("time") : usual.time);
  if (time === undefined) return undefined;
  const dimensions: Record<string, string> = {};
  const set = (name: string, value: string | undefined): void => {
    if (value !== undefined && value !== "" && value !== "-") dimensions[name] = value;
  };
  set("ip", usual.ip);
  set("endpoint", usual.target === undefined ? undefined : findPath(usual.target));
  set("method", usual.method);
  let status = usual.status;
  let cost: number | undefined;
  for (const name of map.keys()) {
    const value = name === "time" ? undefined : mapped(name);
    if (value === undefined) continue;
    if (name === "status") status = Number(value);
    else if (name === "cost") cost = readCost(value);
    else if (name === "ip") set(name, lastAddress(value));
    else set(name, name === "endpoint" ? findPath(value) : value);
  }
  return { ...time, dimensions, cost, wasDenied: Number.isNaN(status) ? undefined : deniedStatuses.has(status) };
}

function readText(value: unknown): string | undefined {
  if (typeof value === "string") return value;
  if (typeof value === "number" || typeof value === "boolean") return String(value);
  // Headers of some formats are lists.
  return Array.isArray(value) ? readText(value[0]) : undefined;
}

/** A whole number of at least 1; a log that says 0 or less is taken at 1. */
function readCost(value: string): number | undefined {
  const cost = Math.ceil(Number(value));
  return Number.isFinite(cost) ? Math.max(1, cost) : undefined;
}
