import { type CompiledLimit, ManualClock, MemoryCounters } from "sluice";
import { resolvedLimit } from "sluice/testing";
import type { LeaseWorld } from "./lease-world.ts";

/** One request: who asks, and at which node. */
export interface Ask {
  readonly node: number;
  readonly subject: string;
}

/** Requests, tick by tick: what is asked at one instant. */
export type Traffic = readonly (readonly Ask[])[];

export const tickMs = 5;

/** How much was asked for and let through, by subject. */
export interface Share {
  readonly asked: number;
  readonly admitted: number;
}

export type Shares = ReadonlyMap<string, Share>;

/** Lets a world decide about traffic; `limitOf` is whose limit a subject is under. */
export async function driveTraffic(
  world: LeaseWorld,
  traffic: Traffic,
  limitOf: (subject: string) => CompiledLimit,
): Promise<Shares> {
  const shares = new Map<string, { asked: number; admitted: number }>();
  for (const asks of traffic) {
    for (const { node, subject } of asks) {
      const share = sharesOf(shares, subject);
      share.asked += 1;
      const answer = world.nodes[node]!.take([resolvedLimit(limitOf(subject), subject)]);
      if (answer === true) share.admitted += 1;
      else if (answer !== false) void answer.then((taken) => (share.admitted += taken ? 1 : 0));
    }
    await world.pass(tickMs);
  }
  await world.pass(100);
  return shares;
}

/** The same traffic, decided one by one by counters in one place. */
export function decideExactly(traffic: Traffic, limitOf: (subject: string) => CompiledLimit, originMs: number): Shares {
  const clock = new ManualClock(originMs, 0);
  const counters = new MemoryCounters({ clock });
  const shares = new Map<string, { asked: number; admitted: number }>();
  for (const asks of traffic) {
    for (const { subject } of asks) {
      const share = sharesOf(shares, subject);
      share.asked += 1;
      if (counters.take([resolvedLimit(limitOf(subject), subject)]).taken) share.admitted += 1;
    }
    clock.advance(tickMs);
  }
  return shares;
}

function sharesOf(
  shares: Map<string, { asked: number; admitted: number }>,
  subject: string,
): { asked: number; admitted: number } {
  const known = shares.get(subject);
  if (known !== undefined) return known;
  const share = { asked: 0, admitted: 0 };
  shares.set(subject, share);
  return share;
}

/** Whole requests out of rates: what is left over comes later. */
export class Paces {
  readonly #owed = new Map<string, number>();

  /** How many requests are due of a pace after one more tick. */
  next(name: string, perSecond: number): number {
    const owed = (this.#owed.get(name) ?? 0) + (perSecond * tickMs) / 1000;
    this.#owed.set(name, owed - Math.floor(owed));
    return Math.floor(owed);
  }
}
