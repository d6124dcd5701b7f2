import { ManualClock, MemoryCounters } from "sluice";
import type { CompiledLimit } from "sluice/store";
import { resolvedLimit } from "sluice/testing";
import type { LeaseWorld } from "./lease-world.ts";

/** One request: its subject, and its node. */
export interface Ask {
  readonly node: number;
  readonly subject: string;
}

/** Requests, tick by tick: those of one instant. */
export type Traffic = readonly (readonly Ask[])[];

export const tickMs = 5;

/** How much was requested and admitted, by subject. */
export interface Share {
  readonly asked: number;
  readonly admitted: number;
}

export type Shares = ReadonlyMap<string, Share>;

/** Lets a world decide traffic; `findLimit` returns the limit of a subject. */
export async function driveTraffic(
  world: LeaseWorld,
  traffic: Traffic,
  findLimit: (subject: string) => CompiledLimit,
): Promise<Shares> {
  const shares = new Map<string, { asked: number; admitted: number }>();
  for (const asks of traffic) {
    for (const { node, subject } of asks) {
      const share = divideCounts(shares, subject);
      share.asked += 1;
      const answer = world.nodes[node]!.take([resolvedLimit(findLimit(subject), subject)]);
      if (answer === true) share.admitted += 1;
      else if (answer !== false) void answer.then((taken) => (share.admitted += taken ? 1 : 0));
    }
    await world.pass(tickMs);
  }
  await world.pass(100);
  return shares;
}

/** The same traffic, decided one by one by central counters. */
export function decideExactly(
  traffic: Traffic,
  findLimit: (subject: string) => CompiledLimit,
  originMs: number,
): Shares {
  const clock = new ManualClock(originMs, 0);
  const counters = new MemoryCounters({ clock });
  const shares = new Map<string, { asked: number; admitted: number }>();
  for (const asks of traffic) {
    for (const { subject } of asks) {
      const share = divideCounts(shares, subject);
      share.asked += 1;
      if (counters.take([resolvedLimit(findLimit(subject), subject)]).taken) share.admitted += 1;
    }
    clock.advance(tickMs);
  }
  return shares;
}

function divideCounts(
  shares: Map<string, { asked: number; admitted: number }>,
  subject: string,
): { asked: number; admitted: number } {
  const known = shares.get(subject);
  if (known !== undefined) return known;
  const share = { asked: 0, admitted: 0 };
  shares.set(subject, share);
  return share;
}

/** Whole requests from rates: the remainder comes later. */
export class Paces {
  readonly #owed = new Map<string, number>();

  /** How many requests of a pace are due after one more tick. */
  next(name: string, perSecond: number): number {
    const owed = (this.#owed.get(name) ?? 0) + (perSecond * tickMs) / 1000;
    this.#owed.set(name, owed - Math.floor(owed));
    return Math.floor(owed);
  }
}
