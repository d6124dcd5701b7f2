import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { WaitingLine } from "./waiting-line.ts";

/** Takes at most this many. */
function takeUpTo<T>(line: WaitingLine<T>, most: number, perTurn: number): T[] {
  let left = most;
  return line.take(perTurn, () => left-- > 0);
}

function pushSlice(line: WaitingLine<string>, name: string, length: number): void {
  line.endSlice();
  for (let i = 0; i < length; i++) line.push(`${name}${i}`);
  line.endSlice();
}

describe("a waiting line", () => {
  it("takes a few of each slice in turn", () => {
    const line = new WaitingLine<string>();
    pushSlice(line, "a", 5);
    pushSlice(line, "b", 1);
    pushSlice(line, "c", 3);
    expect(takeUpTo(line, 100, 2)).toEqual(["a0", "a1", "b0", "c0", "c1", "a2", "a3", "c2", "a4"]);
    expect(line.length).toBe(0);
    expect(takeUpTo(line, 100, 2)).toEqual([]);
  });

  it("lets out what comes after a thousand within the first two turns", () => {
    const line = new WaitingLine<string>();
    pushSlice(line, "many", 1000);
    pushSlice(line, "one", 1);
    expect(takeUpTo(line, 16, 8)).toContain("one0");
  });

  it("continues with whose turn it is, even if calls are shorter than a turn", () => {
    const line = new WaitingLine<string>();
    pushSlice(line, "many", 1000);
    pushSlice(line, "one", 1);
    const taken = Array.from({ length: 6 }, () => takeUpTo(line, 3, 8)).flat();
    expect(taken.slice(0, 16)).toContain("one0");
  });

  it("puts what has waited already before everything else, in order", () => {
    const line = new WaitingLine<string>();
    pushSlice(line, "a", 2);
    line.pushFirst(["x", "y", "z"]);
    line.pushFirst([]);
    expect(line.length).toBe(5);
    expect([...line]).toEqual(["x", "y", "z", "a0", "a1"]);
    expect(takeUpTo(line, 4, 8)).toEqual(["x", "y", "z", "a0"]);
  });

  it("ends a slice when something is taken, so that later items are behind", () => {
    const line = new WaitingLine<string>();
    for (let i = 0; i < 10; i++) line.push(`early${i}`);
    expect(takeUpTo(line, 2, 2)).toEqual(["early0", "early1"]);
    line.push("late");
    expect(takeUpTo(line, 5, 2)).toContain("late");
  });

  it("forgets what is filtered out, and nothing else", () => {
    const line = new WaitingLine<string>();
    pushSlice(line, "a", 4);
    takeUpTo(line, 1, 8);
    line.push("b0");
    line.filter((item) => item !== "a2" && item !== "b0");
    expect([line.length, [...line]]).toEqual([2, ["a1", "a3"]]);
    line.push("b1");
    expect(takeUpTo(line, 9, 8)).toEqual(["a1", "a3", "b1"]);
  });

  type Step =
    | { readonly kind: "push"; readonly count: number }
    | { readonly kind: "endSlice" }
    | { readonly kind: "take"; readonly most: number; readonly perTurn: number }
    /** Some of what was taken last comes back. */
    | { readonly kind: "again"; readonly share: number }
    | { readonly kind: "filter"; readonly every: number };

  const step: fc.Arbitrary<Step> = fc.oneof(
    fc.record({ kind: fc.constant("push" as const), count: fc.integer({ min: 1, max: 30 }) }),
    fc.record({ kind: fc.constant("endSlice" as const) }),
    fc.record({
      kind: fc.constant("take" as const),
      most: fc.integer({ min: 0, max: 40 }),
      perTurn: fc.integer({ min: 1, max: 9 }),
    }),
    fc.record({ kind: fc.constant("again" as const), share: fc.integer({ min: 1, max: 4 }) }),
    fc.record({ kind: fc.constant("filter" as const), every: fc.integer({ min: 2, max: 5 }) }),
  );

  it("lets everything out exactly once that is not filtered, and what came together in order", () => {
    fc.assert(
      fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
        const line = new WaitingLine<{ readonly slice: number; readonly number: number }>();
        const inside = new Set<{ readonly slice: number; readonly number: number }>();
        const lastOut = new Map<number, number>();
        let slice = 0;
        let number = 0;
        let recent: { readonly slice: number; readonly number: number }[] = [];
        const out = (items: typeof recent): void => {
          for (const item of items) {
            expect(inside.delete(item)).toBe(true);
            if (item.slice >= 0) expect(item.number).toBeGreaterThan(lastOut.get(item.slice) ?? -1);
            lastOut.set(item.slice, item.number);
          }
          recent = items;
        };
        for (const one of steps) {
          if (one.kind === "push") {
            for (let i = 0; i < one.count; i++) {
              const item = { slice, number: number++ };
              inside.add(item);
              line.push(item);
            }
          } else if (one.kind === "endSlice") {
            line.endSlice();
            slice += 1;
          } else if (one.kind === "take") {
            out(takeUpTo(line, one.most, one.perTurn));
            slice += 1;
          } else if (one.kind === "again") {
            const back = recent
              .splice(0)
              .filter((_, i) => i % one.share === 0)
              .map((item) => ({ ...item, slice: -1 }));
            for (const item of back) inside.add(item);
            line.pushFirst(back);
          } else {
            const keeps = (item: { readonly number: number }): boolean => item.number % one.every !== 0;
            line.filter(keeps);
            for (const item of inside) if (!keeps(item)) inside.delete(item);
          }
          expect(line.length).toBe(inside.size);
          expect(new Set(line)).toEqual(inside);
        }
        out(takeUpTo(line, Number.POSITIVE_INFINITY, 8));
        expect(inside.size).toBe(0);
        expect(line.length).toBe(0);
      }),
      { numRuns: 500 },
    );
  });

  it("serves every slice within one turn of each of the others, however calls are cut", () => {
    fc.assert(
      fc.property(
        fc.array(fc.integer({ min: 1, max: 50 }), { minLength: 2, maxLength: 6 }),
        fc.integer({ min: 1, max: 8 }),
        fc.integer({ min: 1, max: 20 }),
        (lengths, perTurn, most) => {
          const line = new WaitingLine<string>();
          for (const [slice, length] of lengths.entries()) pushSlice(line, `${slice}:`, length);
          const taken: string[] = [];
          while (line.length > 0) taken.push(...takeUpTo(line, most, perTurn));
          for (const slice of lengths.keys()) {
            const first = taken.findIndex((item) => item.startsWith(`${slice}:`));
            expect(first).toBeLessThanOrEqual(slice * perTurn);
          }
        },
      ),
    );
  });
});
