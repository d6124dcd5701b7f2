import type { CompiledWindow, LimitOfSubject } from "sluice/store";
import type { RedisServers } from "../connect/redis-servers.ts";
import { valueAt } from "./lanes.ts";

/** Subjects whose counters live on separate servers. */
export interface Cell {
  /** Shown in statistics and logs. */
  readonly name: string;
  readonly servers: string | RedisServers;
  /** Counters of limits by these dimensions and values: `{ tenant: ["acme"] }`. */
  readonly values?: Readonly<Record<string, readonly string[]>> | undefined;
  /** Counters limited by the windows of these tiers. */
  readonly tiers?: readonly string[] | undefined;
}

/** The cell that a counter lives in, by its own dimensions alone: every request finds it in the same place. */
export function findCell<T extends { readonly cell: Cell }>(
  resolved: LimitOfSubject,
  cells: readonly T[],
): T | undefined {
  return cells.find(({ cell }) => isIn(resolved, cell));
}

function isIn({ limit, subject, windows }: LimitOfSubject, { values = {}, tiers = [] }: Cell): boolean {
  const { by } = limit.source;
  for (const [dimension, wanted] of Object.entries(values)) {
    const index = by.indexOf(dimension);
    if (index < 0) continue;
    if (wanted.includes(by.length === 1 ? subject : valueAt(subject, index))) return true;
  }
  return tiers.some((tier) => areFrom(windows, limit.tiers.get(tier)));
}

/** Whether windows are a tier's. They may be copies: of two limits with the same counter, one does not charge it. */
function areFrom(windows: readonly CompiledWindow[], tier: readonly CompiledWindow[] | undefined): boolean {
  if (windows === tier) return true;
  return tier?.length === windows.length && windows.every(({ source }, i) => source === tier[i]!.source);
}
