import type { Sample } from "./exposition.ts";

/** From 10 µs, which a decision in memory stays below, to a second. */
export const durationBounds: readonly number[] = [
  ...[0.000_01, 0.000_025, 0.000_05, 0.000_1, 0.000_25, 0.000_5],
  ...[0.001, 0.002_5, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1],
];

/** How full a counter is, finer near the top, where warnings begin. */
export const shareBounds: readonly number[] = [0.1, 0.25, 0.5, 0.7, 0.8, 0.9, 0.95, 1];

/** Observations by size: plain numbers, because they are counted far more often than they are read. */
export interface Buckets {
  readonly bounds: readonly number[];
  /** How many are at most as large as each bound and larger than the one before; last, those above all bounds. */
  readonly counts: Float64Array;
  sum: number;
}

export function createBuckets(bounds: readonly number[]): Buckets {
  return { bounds, counts: new Float64Array(bounds.length + 1), sum: 0 };
}

export function observe(buckets: Buckets, value: number): void {
  const { bounds, counts } = buckets;
  let i = 0;
  while (i < bounds.length && value > bounds[i]!) i += 1;
  counts[i]! += 1;
  buckets.sum += value;
}

/** A histogram's series, whose buckets hold everything up to their bound. `unit` is what a bound is worth. */
export function* histogramSamples(
  { bounds, counts, sum }: Pick<Buckets, "bounds" | "counts" | "sum">,
  labels: readonly string[],
  unit = 1,
): Generator<Sample> {
  let count = 0;
  for (let i = 0; i < counts.length; i++) {
    count += counts[i]!;
    const le = i < bounds.length ? Number((bounds[i]! * unit).toPrecision(12)) : Number.POSITIVE_INFINITY;
    yield { labels, value: count, part: { suffix: "_bucket", le } };
  }
  yield { labels, value: sum * unit, part: { suffix: "_sum" } };
  yield { labels, value: count, part: { suffix: "_count" } };
}
