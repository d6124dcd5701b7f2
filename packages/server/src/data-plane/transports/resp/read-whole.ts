import { invalidWord } from "./invalid-word.ts";

/** A whole number within bounds. Throws `invalid_request`, naming the field. */
export function readWhole(text: string, field: string, min: number, max: number): number {
  const value = /^[+-]?\d{1,16}$/.test(text) ? Number(text) : Number.NaN;
  if (value >= min && value <= max) return value;
  throw invalidWord(field, `must be a whole number from ${min} to ${max}, not ${show(text)}`);
}

function show(text: string): string {
  return `'${text.length > 32 ? `${text.slice(0, 32)}…` : text}'`;
}
