import { type Demand, noDemand, observeDemand } from "../demand.ts";
import { emptyBucket, refill, resize, type ShareBucket, takeFrom } from "../share-bucket.ts";
import {
  type DividedLimit,
  type Publication,
  publish,
  receive,
  type ShareHolder,
  shareAt,
  startHolder,
} from "../share-holder.ts";

/** A holder in the world: when it lives, how its clock runs, and what is asked of it. */
export interface WorldHolder {
  readonly id: string;
  readonly fromMs: number;
  readonly untilMs: number;
  /** By how much its clock runs too fast, as a share: 0.01 is 1 %. */
  readonly skew: number;
  /** When none of its messages arrive, in either direction. */
  readonly cutOff: readonly { readonly fromMs: number; readonly untilMs: number }[];
  /** Requests per second, in stretches of equal length. */
  readonly demand: readonly number[];
}

export interface WorldOptions {
  readonly limit: DividedLimit;
  readonly holders: readonly WorldHolder[];
  readonly lengthMs: number;
  /** Random numbers from 0 to 1, for delays and losses. */
  readonly random: () => number;
  /** The longest delay of a message, one way, and the share of messages that are lost. */
  readonly maxDelayMs: number;
  readonly lost: number;
}

export interface World {
  /** Every cost of 1 that passed, in order of time. */
  readonly admitted: readonly { readonly atMs: number; readonly holder: string }[];
  /** The rate that all holders had together, at the end of each second. */
  readonly rates: readonly number[];
  readonly shares: ReadonlyMap<string, number>;
}

const tickMs = 20;
const exchangeEveryMs = 1_000;

interface Living {
  readonly of: WorldHolder;
  holder: ShareHolder;
  bucket: ShareBucket;
  demand: Demand;
  asked: number;
  owed: number;
  nextMs: number;
}

interface Arriving {
  readonly atMs: number;
  readonly run: () => void;
}

/** Plays holders that exchange publications at one board, over a network that delays and loses messages. */
export function playWorld({ limit, holders, lengthMs, random, maxDelayMs, lost }: WorldOptions): World {
  const board = new Map<string, { publication: Publication; atMs: number }>();
  const living: Living[] = holders.map((of) => {
    const holder = startHolder(of.id);
    return { of, holder, bucket: emptyBucket, demand: noDemand, asked: 0, owed: 0, nextMs: of.fromMs };
  });
  const admitted: { atMs: number; holder: string }[] = [];
  const rates: number[] = [];
  const arriving: Arriving[] = [];
  const send = ({ cutOff }: WorldHolder, nowMs: number, run: (atMs: number) => void): void => {
    const atMs = nowMs + Math.floor(random() * maxDelayMs);
    const isCut = cutOff.some(({ fromMs, untilMs }) => atMs >= fromMs && nowMs < untilMs);
    if (random() >= lost && !isCut) arriving.push({ atMs, run: () => run(atMs) });
  };

  const exchange = (one: Living, nowMs: number): void => {
    const clock = (atMs: number): number => Math.round(atMs * (1 + one.of.skew));
    const sentMs = clock(nowMs);
    one.demand = observeDemand(one.demand, one.asked, sentMs);
    one.asked = 0;
    const { holder, publication } = publish(one.holder, one.demand.perSecond);
    one.holder = holder;
    send(one.of, nowMs, (boardMs) => {
      const known = board.get(publication.holder);
      if (known === undefined || known.publication.sequence < publication.sequence)
        board.set(publication.holder, { publication, atMs: boardMs });
      const seen = [...board.values()].map((each) => ({ publication: each.publication, ageMs: boardMs - each.atMs }));
      send(one.of, boardMs, (backMs) => {
        if (backMs >= one.of.untilMs) return;
        const now = clock(backMs);
        const { sequence } = publication;
        one.holder = receive(one.holder, limit, { sequence, sentMs, nowMs: now, seen });
        one.bucket = resize(one.bucket, shareAt(one.holder, now), { untilMs: one.holder.leaseUntilMs, nowMs: now });
      });
    });
    one.nextMs = nowMs + exchangeEveryMs * (0.8 + 0.4 * random());
  };

  for (let nowMs = 0; nowMs < lengthMs; nowMs += tickMs) {
    // In order of time, with the answers that these send.
    for (;;) {
      const next = arriving.reduce<Arriving | undefined>((first, one) => {
        return first === undefined || one.atMs < first.atMs ? one : first;
      }, undefined);
      if (next === undefined || next.atMs > nowMs) break;
      arriving.splice(arriving.indexOf(next), 1);
      next.run();
    }
    for (const one of living) {
      if (nowMs < one.of.fromMs || nowMs >= one.of.untilMs) continue;
      if (nowMs >= one.nextMs) exchange(one, nowMs);
      const stretch = Math.min(Math.floor((nowMs / lengthMs) * one.of.demand.length), one.of.demand.length - 1);
      one.owed += (one.of.demand[stretch]! * tickMs) / 1_000;
      const clockMs = Math.round(nowMs * (1 + one.of.skew));
      for (; one.owed >= 1; one.owed -= 1) {
        one.asked += 1;
        const taken = takeFrom(one.bucket, 1, clockMs);
        one.bucket = taken.bucket;
        if (taken.allowed) admitted.push({ atMs: nowMs, holder: one.of.id });
      }
    }
    if (nowMs % 1_000 === 0) rates.push(sumRates(living, nowMs));
  }
  return { admitted, rates, shares: new Map(living.map(({ of, bucket }) => [of.id, bucket.share.rate])) };
}

function sumRates(living: readonly Living[], nowMs: number): number {
  return living.reduce((sum, { of, bucket }) => {
    const isAlive = nowMs >= of.fromMs && nowMs < of.untilMs;
    return isAlive ? sum + refill(bucket, Math.round(nowMs * (1 + of.skew))).share.rate : sum;
  }, 0);
}

/**
 * By how much any interval admitted more than `rate` × its length + `burst`, at most; 0 or less: by nothing. One bucket
 * that every admission is taken from is overdrawn by exactly that.
 */
export function worstExcess(
  admitted: readonly { readonly atMs: number }[],
  { rate, burst }: { readonly rate: number; readonly burst: number },
): number {
  let tokens = burst;
  let lastMs = 0;
  let worst = Number.NEGATIVE_INFINITY;
  for (const { atMs } of admitted) {
    tokens = Math.min(tokens + (rate * (atMs - lastMs)) / 1_000, burst) - 1;
    lastMs = atMs;
    worst = Math.max(worst, -tokens);
  }
  return worst;
}
