import { describeValue } from "../shape/reading.ts";
import { refine, type Shape, text } from "../shape/shape.ts";
import { suggest } from "../shape/suggest.ts";

/** The name of a time zone that this machine knows: `Europe/Berlin`, `UTC`. */
export const timeZone: Shape<string> = refine(
  text({ max: 64 }),
  (name, reading) => {
    if (isTimeZone(name)) return name;
    const meant = reading.isFull ? undefined : suggest(name, knownTimeZones());
    const hint = meant === undefined ? "such as UTC or Europe/Berlin" : `did you mean ${meant}?`;
    return reading.problem(`has an unknown time zone, ${describeValue(name)}; ${hint}`);
  },
  "a time zone, such as Europe/Berlin",
);

let known: readonly string[] | undefined;

function knownTimeZones(): readonly string[] {
  known ??= Intl.supportedValuesOf("timeZone");
  return known;
}

/** Names found valid: asking the machine takes a hundred times as long. There are fewer than this. */
const good = new Set<string>();
const maxGood = 2_000;

function isTimeZone(name: string): boolean {
  if (good.has(name)) return true;
  try {
    new Intl.DateTimeFormat("en", { timeZone: name });
  } catch {
    return false;
  }
  if (good.size < maxGood) good.add(name);
  return true;
}
