import type { ResolvedLimit } from "../counters/counter-store.ts";
import { chargeEachOnce } from "./charge-once.ts";
import type { Resolution } from "./resolve.ts";

/** The limits of several requests as one question, and where each request finds its outcomes in the answer. */
export interface JoinedLimits {
  readonly limits: readonly ResolvedLimit[];
  readonly places: readonly (readonly number[])[];
}

/** The counters that several limits charge: those of one identity and subject. */
interface Shared {
  /** What all requests together take from it. */
  cost: number;
  /** The limits that ask about it, each once; usually one. */
  readonly places: number[];
}

/**
 * Joins the limits of several requests into one question. Requests that lead to the same counter are charged there
 * together: their costs add up, and each of them sees how the sum fits. A request that only `looks` adds nothing. If
 * they have different windows, such as those of two tiers, all of these must have room. Shadow policies of different
 * requests remain separate groups.
 */
export function joinResolutions(resolutions: readonly Resolution[], looks: (index: number) => boolean): JoinedLimits {
  const limits: ResolvedLimit[] = [];
  const known = new Map<string, Shared>();
  let groups = 0;
  const places = resolutions.map((resolution, index) => {
    const before = groups;
    const charged = new Set<Shared>();
    return resolution.limits.map((resolved) => {
      const { limit, subject, group } = resolved;
      groups = Math.max(groups, before + group);
      const key = `${limit.identity}\n${subject}`;
      let shared = known.get(key);
      if (shared === undefined) {
        shared = { cost: 0, places: [] };
        known.set(key, shared);
      }
      // Limits of one request that share a counter are charged there once.
      if (!charged.has(shared) && !looks(index)) shared.cost += resolved.cost;
      charged.add(shared);
      const place = shared.places.find((one) => isAlike(limits[one]!, resolved));
      if (place !== undefined) return place;
      shared.places.push(limits.length);
      limits.push(group === 0 || before === 0 ? resolved : { ...resolved, group: before + group });
      return limits.length - 1;
    });
  });
  let severally = false;
  for (const shared of known.values()) {
    if (shared.places.length > 1) severally = true;
    const cost = Math.max(shared.cost, 1);
    for (const place of shared.places) {
      const resolved = limits[place]!;
      if (resolved.cost !== cost) limits[place] = { ...resolved, cost };
    }
  }
  return { limits: severally ? chargeEachOnce(limits) : limits, places };
}

function isAlike(one: ResolvedLimit, other: ResolvedLimit): boolean {
  if (one.windows === other.windows) return true;
  return (
    one.windows.length === other.windows.length &&
    one.windows.every(({ source, identity }, i) => {
      const window = other.windows[i]!;
      return source === window.source && identity === window.identity;
    })
  );
}
