import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { createLimiter } from "../create-limiter.ts";
import { renderExplanation } from "../explain.ts";
import { printable, printableJson, printableLines } from "./printable.ts";

/** Clears a screen, sets a title, ends a line, turns the direction of text. */
const nasty = "a\u001b[2J\u001b]0;x\u0007b\u009b1m\r\nc\u2028d\u202ee\u007f\ud800";
const obeyed = /[\p{Cc}\p{Cs}\u2028\u2029\u202a-\u202e\u2066-\u2069\u200e\u200f\ufeff]/u;

describe("text that others wrote", () => {
  it("is on one line, with escapes in place of what a terminal obeys", () => {
    expect(printable(nasty)).toBe("a\\u001b[2J\\u001b]0;x\\u0007b\\u009b1m c d\\u202ee\\u007f\\ud800");
    expect(printable("Zoë  naïve 日本 🙂 /a?b=c")).toBe("Zoë  naïve 日本 🙂 /a?b=c");
    expect(printableLines("a\u001b\n  b\r\n")).toBe("a\\u001b\n  b \n");
  });

  it("has nothing in it that a terminal obeys, whatever it was", () => {
    fc.assert(
      fc.property(fc.string({ unit: "binary" }), (text) => {
        expect(printable(text)).not.toMatch(obeyed);
        expect(printableLines(text).replaceAll("\n", "")).not.toMatch(obeyed);
        expect(JSON.parse(printableJson(JSON.stringify(text)))).toBe(text);
        expect(printableJson(JSON.stringify(text))).not.toMatch(obeyed);
      }),
    );
  });
});

it("an explanation in prose has none of it either, whether a request or a policy contains it", async () => {
  const limits = [{ by: ["user"], windows: ["2/h"] }];
  const limiter = createLimiter({
    policies: {
      policies: [
        { id: "p", match: { user: [nasty] }, limits },
        { id: "q", match: { tenant: [nasty] }, limits },
      ],
    },
  });
  for (const dimensions of [
    { user: nasty, endpoint: `/x${nasty}`, tier: nasty },
    { user: "u", tenant: `${nasty}!`, method: nasty, endpoint: "/" },
  ]) {
    const text = renderExplanation(await limiter.explain({ dimensions }));
    expect(text.replaceAll("\n", "")).not.toMatch(obeyed);
    expect(text).toContain("\\u001b");
  }
});
