import { noPaint, type Paint } from "./paint.ts";

/** A line of a plot: two amounts as one bar, and what is written after it. */
export interface Bar {
  readonly title: string;
  readonly good: number;
  readonly bad: number;
  readonly text: string;
}

const leastWidth = 8;

/** What bars are drawn with. */
export function barMarks(paint: Paint): { readonly good: string; readonly bad: string } {
  return paint === noPaint ? { good: "#", bad: "x" } : { good: "█", bad: "▒" };
}

/**
 * A plot of bars on a common scale that fits into lines of `width` characters. Every amount above 0 is visible. Without colours it
 * is plain ASCII.
 */
export function renderBars(bars: readonly Bar[], width: number, paint: Paint): string {
  const marks = barMarks(paint);
  const titles = longest(bars.map(({ title }) => title));
  const texts = longest(bars.map(({ text }) => text));
  const room = Math.max(leastWidth, width - titles - texts - 4);
  const most = Math.max(1, ...bars.map(({ good, bad }) => good + bad));
  const lines = bars.map(({ title, good, bad, text }) => {
    const shown = divide(good, bad, most, room);
    const bar = paint.good(marks.good.repeat(shown.good)) + paint.bad(marks.bad.repeat(shown.bad));
    const space = " ".repeat(room - shown.good - shown.bad);
    return `${title.padEnd(titles)}  ${bar}${space}  ${text}`.trimEnd();
  });
  return `${lines.join("\n")}\n`;
}

/** How many characters stand for each amount. */
function divide(
  good: number,
  bad: number,
  most: number,
  room: number,
): { readonly good: number; readonly bad: number } {
  const least = (good > 0 ? 1 : 0) + (bad > 0 ? 1 : 0);
  const whole = Math.max(least, Math.round((room * (good + bad)) / most));
  if (good === 0 || bad === 0) return { good: good === 0 ? 0 : whole, bad: bad === 0 ? 0 : whole };
  const ofBad = Math.min(whole - 1, Math.max(1, Math.round((whole * bad) / (good + bad))));
  return { good: whole - ofBad, bad: ofBad };
}

function longest(texts: readonly string[]): number {
  return Math.max(0, ...texts.map(({ length }) => length));
}
