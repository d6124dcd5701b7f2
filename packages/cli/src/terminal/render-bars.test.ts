import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { noPaint, paintFor } from "./paint.ts";
import { renderBars } from "./render-bars.ts";

const bar = (title: string, good: number, bad: number, text = "") => ({ title, good, bad, text });

describe("a plot", () => {
  it("has one bar a line, on a common scale, in plain ASCII without colours", () => {
    expect(renderBars([bar("mon", 10, 0, "10"), bar("tue", 15, 5, "20"), bar("wed", 0, 0, "0")], 29, noPaint)).toBe(
      ["mon  ##########            10", "tue  ###############xxxxx  20", "wed                        0", ""].join("\n"),
    );
  });

  it("draws with blocks in colours on a terminal", () => {
    const paint = paintFor({ write() {}, isTTY: true }, {});
    expect(renderBars([bar("a", 1, 1)], 20, paint)).toContain("█\u001b[39m\u001b[31m▒");
  });

  it("shows every amount, and fits into any width there is room in", () => {
    const amount = fc.oneof(fc.constant(0), fc.nat({ max: 1_000_000_000 }));
    const bars = fc.array(fc.record({ good: amount, bad: amount }), { minLength: 1, maxLength: 10 });
    fc.assert(
      fc.property(bars, fc.integer({ min: 30, max: 200 }), (all, width) => {
        const lines = renderBars(
          all.map(({ good, bad }) => bar("title", good, bad, "text")),
          width,
          noPaint,
        ).split("\n");
        for (const [i, { good, bad }] of all.entries()) {
          const line = lines[i]!;
          expect(line.length).toBeLessThanOrEqual(width);
          expect([line.includes("#"), line.slice(5, -4).includes("x")]).toEqual([good > 0, bad > 0]);
        }
      }),
    );
  });
});
