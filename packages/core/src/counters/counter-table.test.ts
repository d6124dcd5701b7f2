import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { CounterBudget, CounterTable } from "./counter-table.ts";
import { type Hash64, hashText } from "./hash.ts";

function openTable(
  words = 1,
  maxCounters = 1e9,
  maxBytes = 1e12,
): { table: CounterTable; budget: CounterBudget; dropped: number[] } {
  const budget = new CounterBudget(maxCounters, maxBytes);
  const dropped: number[] = [];
  const table = budget.watch(new CounterTable(words, budget, (numbers, at) => dropped.push(numbers[at + words - 1]!)));
  return { table, budget, dropped };
}

const hash: Hash64 = { lo: 0, hi: 0 };

function put(table: CounterTable, lo: number, hi: number, idleMs: number, nowMs: number, value = 0): void {
  let at = table.find(lo, hi);
  if (at < 0) at = table.insert(lo, hi, nowMs);
  table.numbers[at] = idleMs;
  for (let word = 1; word < table.words; word++) table.numbers[at + word] = value;
}

describe("a counter table", () => {
  it("agrees with a map on every live counter, whatever is inserted, found, deleted and idle, while it grows", () => {
    const operation = fc.record({
      // Few homes and many keys: chains that collide, wrap around and close over gaps.
      lo: fc.oneof(fc.integer({ min: 0, max: 3000 }), fc.integer({ min: 1020, max: 1030 }), fc.constant(-1)),
      hi: fc.integer({ min: 1, max: 4 }).map((n) => n * 4096),
      act: fc.constantFrom("put", "put", "put", "delete", "find"),
      livesMs: fc.constantFrom(1, 50, 5000, 1e9),
    });
    fc.assert(
      fc.property(fc.array(operation, { minLength: 500, maxLength: 3000, size: "max" }), (operations) => {
        const { table, budget } = openTable(2);
        const model = new Map<string, { idleMs: number; value: number }>();
        let nowMs = 0;
        for (const [i, { lo, hi, act, livesMs }] of operations.entries()) {
          nowMs += 0.25;
          const key = `${lo},${hi}`;
          const at = table.find(lo, hi);
          const known = model.get(key);
          if (known !== undefined && known.idleMs > nowMs) {
            if (at < 0) expect.fail(`live counter ${key} is gone`);
            if (table.numbers[at + 1] !== known.value) expect.fail(`counter ${key} changed`);
          }
          if (act === "put") {
            put(table, lo, hi, nowMs + livesMs, nowMs, i);
            model.set(key, { idleMs: nowMs + livesMs, value: i });
          } else if (act === "delete" && at >= 0) {
            table.delete(at);
            model.delete(key);
            if (table.find(lo, hi) >= 0) expect.fail(`deleted counter ${key} is still there`);
          }
          if (budget.counters !== table.count) expect.fail("the budget has lost count");
        }
        let live = 0;
        for (const [key, { idleMs, value }] of model) {
          if (idleMs <= nowMs) continue;
          live += 1;
          const [lo, hi] = key.split(",").map(Number) as [number, number];
          const at = table.find(lo, hi);
          if (at < 0 || table.numbers[at + 1] !== value) expect.fail(`live counter ${key} is gone or changed`);
        }
        if (table.count < live) expect.fail(`${table.count} counted, ${live} there`);
      }),
      { numRuns: 40 },
    );
  });

  it("holds a million counters in at most 64 bytes each, old arrays gone", () => {
    const { table, budget } = openTable();
    for (let i = 0; i < 1_000_000; i++) {
      hashText(`user:${i}`, hash);
      put(table, hash.lo, hash.hi || 1, 1e12, 0);
    }
    for (let i = 0; i < 100_000; i++) table.find(i, 1);
    expect(table.count).toBe(1_000_000);
    expect(budget.bytes / table.count).toBeLessThanOrEqual(64);
  });

  it("stays at the size of its living counters while any number of subjects come and go", () => {
    const { table, budget } = openTable();
    for (let i = 0; i < 300_000; i++) {
      hashText(`visitor:${i}`, hash);
      // A new subject every millisecond, each idle a second later: a thousand live at any time.
      put(table, hash.lo, hash.hi || 1, i + 1000, i);
    }
    // A table of 4 096 slots, twice while its counters move.
    expect(budget.bytes).toBeLessThanOrEqual(2 * 4096 * 16);
    expect(budget.evictedLive).toBe(0);
  });

  it("when full drops, of counters that have used as much, the one nearest to idle, counts it, and stays within its bound", () => {
    const { table, budget } = openTable(1, 1000);
    // Ten subjects at their limit for a long time, then a flood of subjects that were seen once.
    for (let i = 0; i < 10; i++) put(table, i * 7919, 7, 1e9 + i, 0);
    for (let i = 0; i < 100_000; i++) {
      hashText(`flood:${i}`, hash);
      put(table, hash.lo, hash.hi || 1, i + 100_000, i);
    }
    // A limit leaves an eighth of what it takes to others.
    expect(table.count).toBe(889);
    expect(budget.evictedLive).toBeGreaterThan(90_000);
    for (let i = 0; i < 10; i++) expect(table.find(i * 7919, 7)).toBeGreaterThanOrEqual(0);
  });

  it("does not outgrow its bytes", () => {
    const { table, budget } = openTable(1, 1e9, 64 * 1024);
    for (let i = 0; i < 50_000; i++) put(table, i * 31, (i + 1) * 4096, 1e9, 0);
    for (let i = 0; i < 5000; i++) table.find(1, 1);
    expect(budget.bytes).toBeLessThanOrEqual(64 * 1024);
    expect(table.count).toBeLessThanOrEqual((64 * 1024) / 16);
    expect(budget.evictedLive).toBeGreaterThan(0);
  });

  it("leaves idle counters behind when it moves, for good, and keeps count of the rest", () => {
    const { table, budget } = openTable();
    for (let i = 0; i < 820; i++) put(table, i * 7, 4096, 10, 0);
    put(table, -1, 8192, 1e9, 100);
    // They are asked for while the table moves: some have been passed by then, and are gone.
    let found = 1;
    for (let i = 819; i >= 0; i--) if (table.find(i * 7, 4096) >= 0) found += 1;
    expect(found).toBeLessThan(821);
    expect(table.count).toBe(found);
    expect(budget.counters).toBe(found);
  });

  it("reports every counter that leaves, once", () => {
    const { table, dropped } = openTable(2, 100);
    for (let i = 0; i < 1000; i++) put(table, i * 104_729, 1, 1e9, 0, i);
    expect(dropped).toHaveLength(1000 - table.count);
    expect(new Set(dropped).size).toBe(1000 - table.count);
  });
});

describe("the hash", () => {
  it("distinguishes texts that differ in one unit, in length or in their upper byte", () => {
    const seen = new Set<string>();
    const texts = [
      ..."a b ab ba aa abc abcd abcde abcd\0 \u0161 a\u0100 ab\u0100 abc\u0100 \u0161abc \u0161\u0161 \u6261".split(
        " ",
      ),
      ...["", "\0", "\0\0", "\0\0\0", "\0\0\0\0", "\0".repeat(256), "\u6261\u6463", "\u6261\u6463ab", "ab\u6261\u6463"],
      ...[
        "abcd\u6261\u6463",
        "abcd\u6261\u6463zz",
        "\u6261\u6463abcdzz",
        "\u6261\u6463abcd",
        "abcdabcd",
        "\u6261\u6463\u6261\u6463",
      ],
    ];
    for (const text of texts) {
      hashText(text, hash);
      seen.add(`${hash.lo},${hash.hi}`);
    }
    expect(seen.size).toBe(texts.length);
  });

  it("spreads a million sequential names without a collision", () => {
    const seen = new Set<number>();
    const homes = new Int32Array(1024);
    for (let i = 0; i < 1_000_000; i++) {
      hashText(`user:${i}`, hash);
      seen.add((hash.hi >>> 0) * 2 ** 21 + ((hash.lo >>> 11) & 0x1fffff));
      homes[hash.lo & 1023]! += 1;
    }
    expect(seen.size).toBeGreaterThan(999_990);
    expect(Math.min(...homes)).toBeGreaterThan(800);
    expect(Math.max(...homes)).toBeLessThan(1200);
  });
});
