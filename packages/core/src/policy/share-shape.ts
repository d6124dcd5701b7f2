import { byType } from "../shape/list-shapes.ts";
import { number, refine, type Shape, text } from "../shape/shape.ts";

/** `80%`, as the number before the sign. */
export const percentText: Shape<number> = refine(
  text({ max: 16, pattern: /^\d+(\.\d+)?\s*%$/, form: "a percentage, such as 80%" }),
  (written) => Number.parseFloat(written),
);

const part = number({ min: 0, max: 1 });

/** From 0 to 1. A value that can only mean percent gets a hint on how to write that. */
const partOfOne: Shape<number> = {
  ...part,
  read(value, reading) {
    const isPercent = typeof value === "number" && value > 1 && value <= 100;
    return isPercent
      ? reading.problem(`must be ${part.name}, but is ${value}; for ${value} percent write ${value}%`)
      : part.read(value, reading);
  },
};

/** A part of something: a number from 0 to 1, or a percentage of at most 100%. */
export const shareShape: Shape<number> = byType({
  number: partOfOne,
  text: refine(percentText, (percent, reading) =>
    percent <= 100 ? percent / 100 : reading.problem(`must be at most 100%, but is ${percent}%`),
  ),
});

/** `1%`, as it is written in a policy. */
export function renderShare(share: number): string {
  return `${Number((share * 100).toPrecision(12))}%`;
}
