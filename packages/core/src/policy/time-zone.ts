import { describeValue } from "../shape/reading.ts";
import { refine, type Shape, text } from "../shape/shape.ts";
import { suggest } from "../shape/suggest.ts";

/** The name of a time zone that this machine knows: `Europe/Berlin`, `UTC`. */
export const timeZone: Shape<string> = refine(
  text({ max: 64 }),
  (name, reading) => {
    if (isTimeZone(name)) return name;
    const meant = suggest(name, Intl.supportedValuesOf("timeZone"));
    const hint = meant === undefined ? "such as UTC or Europe/Berlin" : `did you mean ${meant}?`;
    return reading.problem(`has an unknown time zone, ${describeValue(name)}; ${hint}`);
  },
  "a time zone, such as Europe/Berlin",
);

function isTimeZone(name: string): boolean {
  try {
    new Intl.DateTimeFormat("en", { timeZone: name });
    return true;
  } catch {
    return false;
  }
}
