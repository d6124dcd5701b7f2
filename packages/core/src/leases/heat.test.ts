import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { Heat } from "./heat.ts";

/** Hashes in no order, the same in every run. */
function createHashes(): () => number {
  let state = 1;
  return () => {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    return state;
  };
}

describe("the heat of counters", () => {
  it("is never too low if there is enough to say, and there are few others", () => {
    const asked = fc.record({
      lo: fc.integer({ min: 0, max: 5 }),
      hi: fc.integer({ min: 0, max: 5 }),
      afterMs: fc.nat(300),
    });
    fc.assert(
      fc.property(fc.array(asked, { maxLength: 300 }), (all) => {
        const heat = new Heat(2, 0);
        const exact = new Map<string, number>();
        let nowMs = 0;
        let halvings = 0;
        for (const { lo, hi, afterMs } of all) {
          nowMs += afterMs;
          for (; halvings < Math.floor(nowMs / 1000); halvings++)
            for (const [key, count] of exact) exact.set(key, Math.floor(count / 2));
          const key = `${lo} ${hi}`;
          const count = (exact.get(key) ?? 0) + 1;
          exact.set(key, count);
          expect(heat.note(lo, hi, nowMs)).toBeGreaterThanOrEqual(count < 4 ? 0 : count / 2);
        }
      }),
    );
  });

  it.each([0.1, 0.25, 1, 2, 20])(
    "of a steady %d a second is reported as that after a while, and never as more",
    (perSecond) => {
      const heat = new Heat(perSecond, 0);
      const told: number[] = [];
      for (let i = 0; i < 400; i++) told.push(heat.note(7, 7, (i * 1000) / perSecond));
      expect(Math.max(...told)).toBeCloseTo(perSecond, 5);
      expect(Math.max(...told.slice(-100))).toBeCloseTo(perSecond, 5);
    },
  );

  it.each([0, 0.01, 0.25, 1])("of fewer than four is too little to say, even if hot is %d a second", (perSecond) => {
    const heat = new Heat(perSecond, 0);
    expect([1, 2, 3].map(() => heat.note(7, 7, 0))).toEqual([0, 0, 0]);
    expect(heat.note(7, 7, 0)).toBeGreaterThan(0);
  });

  it("of one among fifty thousand others is hardly more than its own", () => {
    const heat = new Heat(2, 0);
    const hash = createHashes();
    for (let i = 0; i < 50_000; i++) heat.note(hash(), hash(), 0);
    let tooHigh = 0;
    for (let i = 0; i < 1000; i++) if (heat.note(hash(), hash(), 0) > 1) tooHigh += 1;
    expect(tooHigh).toBeLessThan(50);
  });

  it("of subjects that come once each, a hundred thousand a second, is none, and a frequent one is noticed among them", () => {
    const hot = 0.25;
    const heat = new Heat(hot, 0);
    const hash = createHashes();
    let mistaken = 0;
    let often = 0;
    for (let i = 0; i < 3_000_000; i++) {
      const nowMs = i / 100;
      if (heat.note(hash(), hash(), nowMs) >= hot) mistaken += 1;
      if (i % 50_000 === 0) often = heat.note(11, 13, nowMs);
    }
    expect(mistaken).toBeLessThan(30_000);
    expect(often).toBeGreaterThan(hot);
    for (let i = 0; i < 200; i++) often = heat.note(17, 19, 30_000 + i * 1000);
    expect(often).toBeGreaterThan(0.49);
    expect(often).toBeLessThan(1.3);
  });

  it("stays where it is at its largest, and is gone after a while", () => {
    const heat = new Heat(2, 0);
    for (let i = 0; i < 70_000; i++) heat.note(-1, -1, 0);
    expect(heat.note(-1, -1, 0)).toBe(65_535 / 2);
    expect(heat.note(-1, -1, 1000)).toBe(32_769 / 2);
    expect([1, 2, 3, 4].map(() => heat.note(-1, -1, 1e9))).toEqual([0, 0, 0, 2]);
  });
});
