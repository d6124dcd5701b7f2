import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { Heat } from "./heat.ts";

describe("the heat of counters", () => {
  it("is never told too low, and halves every second", () => {
    const asked = fc.record({
      lo: fc.integer({ min: 0, max: 5 }),
      hi: fc.integer({ min: 0, max: 5 }),
      afterMs: fc.nat(300),
    });
    fc.assert(
      fc.property(fc.array(asked, { maxLength: 300 }), (all) => {
        const heat = new Heat(0);
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
          expect(heat.note(lo, hi, nowMs)).toBeGreaterThanOrEqual(count);
        }
      }),
    );
  });

  it("of one among fifty thousand others is hardly more than its own", () => {
    const heat = new Heat(0);
    let state = 1;
    const random = (): number => {
      state ^= state << 13;
      state ^= state >>> 17;
      state ^= state << 5;
      return state;
    };
    for (let i = 0; i < 50_000; i++) heat.note(random(), random(), 0);
    let tooHigh = 0;
    for (let i = 0; i < 1000; i++) if (heat.note(random(), random(), 0) > 2) tooHigh += 1;
    expect(tooHigh).toBeLessThan(50);
  });

  it("stays where it is at its largest, and is gone after a while", () => {
    const heat = new Heat(0);
    for (let i = 0; i < 70_000; i++) heat.note(-1, -1, 0);
    expect(heat.note(-1, -1, 0)).toBe(65_535);
    expect(heat.note(-1, -1, 1000)).toBe(32_768);
    expect(heat.note(-1, -1, 1e9)).toBe(1);
  });
});
