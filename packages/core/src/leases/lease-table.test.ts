import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { LeaseTable } from "./lease-table.ts";

interface One {
  readonly lo: number;
  readonly hi: number;
}

describe("a table of leases", () => {
  it("finds what was added and not deleted, whatever hashes are alike", () => {
    const hash = fc.integer({ min: -3, max: 3 });
    const command = fc.record({ adds: fc.boolean(), lo: hash, hi: hash });
    fc.assert(
      fc.property(fc.array(command, { maxLength: 200 }), (commands) => {
        const table = new LeaseTable<One>(1000);
        const model = new Map<string, One>();
        for (const { adds, lo, hi } of commands) {
          const key = `${lo} ${hi}`;
          const known = model.get(key);
          if (adds && known === undefined) {
            const one = { lo, hi };
            table.add(one);
            model.set(key, one);
          } else if (!adds && known !== undefined) {
            table.delete(known);
            model.delete(key);
          }
        }
        expect(table.size).toBe(model.size);
        for (let lo = -3; lo <= 3; lo++)
          for (let hi = -3; hi <= 3; hi++) expect(table.find(lo, hi)).toBe(model.get(`${lo} ${hi}`));
        const all: One[] = [];
        table.forEach((one) => {
          all.push(one);
        });
        expect(new Set(all)).toEqual(new Set(model.values()));
        expect([0, 1, 2].flatMap((index) => table.part(index, 3))).toEqual(all);
      }),
    );
  });

  it("ignores that something is deleted which it does not have", () => {
    const table = new LeaseTable<One>(10);
    const one = { lo: 1, hi: 1 };
    table.add(one);
    table.delete({ lo: 1, hi: 2 });
    expect(table.find(1, 1)).toBe(one);
    expect(table.size).toBe(1);
  });

  it("says when it is full", () => {
    const table = new LeaseTable<One>(2);
    expect(table.isFull).toBe(false);
    table.add({ lo: 1, hi: 1 });
    table.add({ lo: 2, hi: 1 });
    expect(table.isFull).toBe(true);
  });
});
