import { compareIds, fillShares, noShare, type Share } from "./fill-shares.ts";

/** Orders plans: by number, then by the holder that made it. */
export interface Epoch {
  readonly number: number;
  readonly by: string;
}

/** Who may have which share. The shares of a plan are together at most the limit. */
export interface SharePlan {
  readonly epoch: Epoch;
  /** By holder. Others have none. */
  readonly shares: Readonly<Record<string, Share>>;
}

/** What a holder says about itself. It replaces what the same holder said before. */
export interface Publication {
  readonly holder: string;
  /** Counts up: an older one that arrives later is ignored. */
  readonly sequence: number;
  readonly demand: number;
  /** The plan that it follows. Undefined before it knows one. */
  readonly plan: SharePlan | undefined;
}

/** The latest publication of a holder, and how long ago it arrived, by the clock of the place where all of them arrive. */
export interface Seen {
  readonly publication: Publication;
  readonly ageMs: number;
}

/** The answer to a publication: everything that had arrived when this one did, itself included. */
export interface Exchange {
  /** The sequence of the publication that it answers, and when that was sent, by the holder's own clock. */
  readonly sequence: number;
  readonly sentMs: number;
  readonly nowMs: number;
  readonly seen: readonly Seen[];
}

export interface DividedLimit extends Share {
  /** How long a share lasts after the publication that renewed it was sent. */
  readonly ttlMs: number;
  /** How much longer others wait, for clocks that do not run alike. */
  readonly marginMs: number;
}

/**
 * One holder of a divided limit, as plain data.
 *
 *     alone ──publishes──► follows the newest plan: shrinks to it at once
 *                             │ every unexpired holder has published this plan
 *                             ▼
 *                          grown: has what the plan gives ──newer plan──► shrinks …
 *                             │ no answer for the ttl
 *                             ▼
 *                          lapsed: has nothing, until it grows again
 */
export interface ShareHolder {
  readonly id: string;
  readonly sequence: number;
  readonly plan: SharePlan | undefined;
  /** Since when it follows that, by its own clock. */
  readonly planSinceMs: number;
  /** What it has until the lease ends. */
  readonly share: Share;
  readonly leaseUntilMs: number;
}

export function startHolder(id: string): ShareHolder {
  const never = Number.NEGATIVE_INFINITY;
  return { id, sequence: 0, plan: undefined, planSinceMs: never, share: noShare, leaseUntilMs: never };
}

/** What the holder may let through now. */
export function shareAt({ share, leaseUntilMs }: ShareHolder, nowMs: number): Share {
  return nowMs < leaseUntilMs ? share : noShare;
}

/** What to send next, and the holder that waits for the answer to it. Answers to earlier ones are ignored. */
export function publish(
  holder: ShareHolder,
  demand: number,
): { readonly holder: ShareHolder; readonly publication: Publication } {
  const { id, plan } = holder;
  const sequence = holder.sequence + 1;
  return { holder: { ...holder, sequence }, publication: { holder: id, sequence, demand, plan } };
}

/** The holder after an answer. */
export function receive(holder: ShareHolder, limit: DividedLimit, exchange: Exchange): ShareHolder {
  const { sequence, sentMs, nowMs, seen } = exchange;
  if (sequence !== holder.sequence) return holder;
  const held = shareAt(holder, nowMs);
  const leaseUntilMs = sentMs + limit.ttlMs;
  // Too late to be of use: others may have counted it out before it arrived.
  if (leaseUntilMs <= nowMs) return { ...holder, share: noShare, leaseUntilMs };
  const alive = seen.filter(({ ageMs }) => ageMs <= limit.ttlMs + limit.marginMs);
  const newest = findNewest(holder.plan, seen);
  const isAgreed = newest !== undefined && alive.every(({ publication }) => isSame(publication.plan, newest));
  // What all agree on it has first, and a plan that it makes then takes away from that.
  const grown = isAgreed ? shareIn(newest, holder.id) : least(held, shareIn(newest, holder.id));
  const plan = revisePlan(holder, newest, limit, { alive, isAgreed, nowMs });
  const planSinceMs = isSame(plan, holder.plan) ? holder.planSinceMs : nowMs;
  return { ...holder, plan, planSinceMs, share: least(grown, shareIn(plan, holder.id)), leaseUntilMs };
}

function shareIn(plan: SharePlan | undefined, id: string): Share {
  return plan !== undefined && Object.hasOwn(plan.shares, id) ? plan.shares[id]! : noShare;
}

function least(one: Share, other: Share): Share {
  return { rate: Math.min(one.rate, other.rate), burst: Math.min(one.burst, other.burst) };
}

function findNewest(own: SharePlan | undefined, seen: readonly Seen[]): SharePlan | undefined {
  let newest = own;
  for (const { publication } of seen) if (isNewer(publication.plan, newest)) newest = publication.plan;
  return newest;
}

interface Standing {
  readonly alive: readonly Seen[];
  readonly isAgreed: boolean;
  readonly nowMs: number;
}

/** The newest plan, or a newer one if that is outdated and it is this holder's turn to make one: the first by id. */
function revisePlan(
  { id, plan: own, planSinceMs }: ShareHolder,
  newest: SharePlan | undefined,
  limit: DividedLimit,
  { alive, isAgreed, nowMs }: Standing,
): SharePlan | undefined {
  if (alive.some(({ publication }) => compareIds(publication.holder, id) < 0)) return newest;
  const asking = alive.map(({ publication: { holder, demand } }) => ({ id: holder, demand }));
  const wanted = fillShares(limit, asking);
  if (newest !== undefined) {
    // One plan at a time, long enough for the others to grow by it.
    const isSettled = isSame(newest, own) && nowMs - planSinceMs >= limit.ttlMs * settledAfter;
    const hasOthers = isForOthers(newest, wanted);
    if (hasOthers ? !(isAgreed || isSettled) : !(isAgreed && isSettled && isFarFrom(newest, wanted, limit.rate)))
      return newest;
  }
  return { epoch: { number: (newest?.epoch.number ?? 0) + 1, by: id }, shares: Object.fromEntries(wanted) };
}

/** A plan is revised after this part of the ttl at the earliest: a few exchanges. */
const settledAfter = 0.5;
/** Smaller changes are not worth a plan: of a share, and of the limit. */
const leastChange = 0.05;
const leastChangeOfLimit = 0.01;

/** Whether the plan lacks a holder, or has one that is gone. */
function isForOthers({ shares }: SharePlan, wanted: ReadonlyMap<string, Share>): boolean {
  const ids = Object.keys(shares);
  return ids.length !== wanted.size || ids.some((id) => !wanted.has(id));
}

function isFarFrom({ shares }: SharePlan, wanted: ReadonlyMap<string, Share>, limitRate: number): boolean {
  return [...wanted].some(([id, { rate }]) => {
    const before = shares[id]?.rate ?? 0;
    const least = Math.max(leastChange * Math.max(before, rate), leastChangeOfLimit * limitRate);
    return Math.abs(before - rate) > least;
  });
}

function isNewer(one: SharePlan | undefined, other: SharePlan | undefined): one is SharePlan {
  if (one === undefined || other === undefined) return one !== undefined;
  const { number, by } = one.epoch;
  return number - other.epoch.number > 0 || (number === other.epoch.number && compareIds(by, other.epoch.by) > 0);
}

function isSame(one: SharePlan | undefined, other: SharePlan | undefined): boolean {
  return !isNewer(one, other) && !isNewer(other, one);
}
