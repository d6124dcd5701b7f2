import { describe, expect, it } from "vitest";
import { DistinctValues, distinctError, exactValues, valueFrom } from "./distinct-values.ts";

/** The same values in every run: a 64-bit mix of a number (splitmix, in two halves). */
function valueAt(number: number): number {
  return valueFrom(mix(number ^ 0x2545f491), mix(Math.imul(number, 0x9e3779b1) ^ 0x5bd1e995));
}

function mix(number: number): number {
  let x = number | 0;
  x = Math.imul(x ^ (x >>> 16), 0x85ebca6b);
  x = Math.imul(x ^ (x >>> 13), 0xc2b2ae35);
  return x ^ (x >>> 16);
}

/** Bytes of a value in a set, at the very least: a reference, a hash and a chain, and the shortest text. */
const leastSetBytes = 40;

describe("distinct values", () => {
  it("are counted exactly up to 1 536", () => {
    const values = new DistinctValues();
    for (let i = 0; i < exactValues; i++) {
      expect(values.has(valueAt(i))).toBe(false);
      values.add(valueAt(i));
      values.add(valueAt(i));
      expect(values.has(valueAt(i))).toBe(true);
      expect(values.count).toBe(i + 1);
    }
    expect(values.bytes).toBeLessThan(16_500);
  });

  it("from 10 to 10 000 000, are never counted too high, nor too low by more than the error, in a tenth of a set", () => {
    const values = new DistinctValues();
    let next = 0;
    for (const size of [10, 100, 1000, 1536, 1537, 2000, 5000, 10_000, 31_623, 100_000, 316_228, 1e6, 3_162_278, 1e7]) {
      for (; next < size; next++) values.add(valueAt(next));
      expect(values.count, `${size}`).toBeLessThanOrEqual(size);
      expect(values.count, `${size}`).toBeGreaterThanOrEqual(size / (1 + distinctError));
      if (size >= 10_000) expect(values.bytes).toBeLessThanOrEqual((size * leastSetBytes) / 10);
    }
  });

  it("are within three standard errors of the truth in all but a few of a thousand sets", () => {
    const size = 20_000;
    let outside = 0;
    for (let set = 0; set < 100; set++) {
      const values = new DistinctValues();
      for (let i = 0; i < size; i++) values.add(valueAt(set * size + i));
      if (values.count > size || values.count < size / (1 + distinctError)) outside += 1;
    }
    expect(outside).toBeLessThanOrEqual(2);
  });

  it("never lower their count, not even where estimating begins", () => {
    const values = new DistinctValues();
    let before = 0;
    for (let i = 0; i < 4000; i++) {
      values.add(valueAt(i));
      expect(values.count).toBeGreaterThanOrEqual(before);
      before = values.count;
    }
  });

  it("do not count what was seen, before and after estimating begins", () => {
    const values = new DistinctValues();
    for (let i = 0; i < 10_000; i++) values.add(valueAt(i));
    const before = values.count;
    for (let i = 0; i < 10_000; i++) {
      expect(values.has(valueAt(i))).toBe(true);
      values.add(valueAt(i));
    }
    expect(values.count).toBe(before);
  });
});
