import { invalidOption } from "./check-options.ts";

/** An option that is a number of at least `min`, or its default. Throws an error that names it. */
export function optionNumber(name: string, value: number | undefined, absent: number, min: number): number {
  if (value === undefined) return absent;
  if (typeof value === "number" && value >= min) return value;
  throw invalidOption(name, `must be a number of at least ${min}, but is ${String(value)}`);
}
