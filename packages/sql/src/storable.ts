import { UnstorableValue } from "./errors.ts";

/** Of names and ids that are in an index. */
const maxNameBytes = 256;

/** NUL, which PostgreSQL has no place for, and halves of surrogate pairs, which have no place in UTF-8. */
const unstorable = /\0|\p{Surrogate}/u;
const everyUnstorable = new RegExp(unstorable, "gu");

/** Whether a text comes back as it was written. Nothing that is stored equals one that does not. */
export function isStorable(text: string): boolean {
  return !unstorable.test(text);
}

/** The record with U+FFFD in place of what cannot be stored. */
export function replaceUnstorable<Entity extends object>(record: Entity): Entity {
  const entries = Object.entries(record).map(([field, value]) => [
    field,
    typeof value === "string" ? value.replaceAll(everyUnstorable, "\ufffd") : value,
  ]);
  return Object.fromEntries(entries) as Entity;
}

/**
 * Throws `UnstorableValue` for what one database would refuse, and the other change without a word. `names` are fields that are
 * bounded because they are in an index.
 */
export function checkStorable<Fields extends object>(record: Fields, names: readonly (keyof Fields & string)[]): void {
  for (const [field, value] of Object.entries(record)) {
    if (typeof value === "string" && !isStorable(value))
      throw new UnstorableValue(field, "has a character that cannot be stored: NUL, or half a surrogate pair");
    if (typeof value === "number" && !Number.isSafeInteger(value))
      throw new UnstorableValue(field, `is ${value}, and not a whole number below 2^53`);
  }
  for (const name of names) {
    if (Buffer.byteLength(String(record[name])) > maxNameBytes)
      throw new UnstorableValue(name, `has more than ${maxNameBytes} bytes`);
  }
}
