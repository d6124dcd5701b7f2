import { UnstorableValue } from "./errors.ts";

/** Bounds names and ids, which an index holds whole. */
const maxNameBytes = 256;

/** NUL, which PostgreSQL cannot store, and halves of surrogate pairs, which UTF-8 cannot encode. */
const unstorable = /\0|\p{Surrogate}/u;
const everyUnstorable = new RegExp(unstorable, "gu");

/** Whether a text comes back as it was written. If not, it equals nothing that is stored. */
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

/** Throws `UnstorableValue` for a value that one database would refuse and the other would silently change. */
export function checkStorable(field: string, value: unknown): void {
  if (typeof value === "string" && !isStorable(value))
    throw new UnstorableValue(field, "contains a character that cannot be stored: NUL, or half of a surrogate pair");
  if (typeof value === "number" && !Number.isSafeInteger(value))
    throw new UnstorableValue(field, `must be a whole number below 2^53, and is ${value}`);
}

/** Throws `UnstorableValue` for a name that is too long to be held whole by an index. */
export function checkLength(field: string, name: string): void {
  if (Buffer.byteLength(name) > maxNameBytes) throw new UnstorableValue(field, `has more than ${maxNameBytes} bytes`);
}
