import { maxTextLength, redactText } from "sluice/internal";
import { isSecretName } from "./secret-names.ts";

type Fields = Readonly<Record<string, unknown>>;

/** Bounds of one line: characters of all its texts together, values, and how deep they are nested. */
const maxCharacters = 16_384;
const maxValues = 500;
const maxDepth = 8;
const maxNameLength = 256;

/** Commands whose arguments are secrets, in the errors of Redis clients. */
const secretCommand = /^(?:auth|hello|config|acl)$/i;

/** What is left of a line's bounds. */
interface Left {
  characters: number;
  values: number;
}

/**
 * Fields as they may be logged: plain data, bounded, and without recognizable secrets, by name and by looks
 * (`redactText`). What exceeds the bounds is left out with a mark, so that no line costs more than about 16 KiB of
 * work.
 */
export function redactFields(fields: Fields): Record<string, unknown> {
  return redactEntries(fields, 0, { characters: maxCharacters, values: maxValues });
}

function redactValue(value: unknown, depth: number, left: Left): unknown {
  left.values -= 1;
  if (typeof value === "string") return shorten(value, left);
  if (typeof value === "bigint") return String(value);
  if (typeof value !== "object" || value === null) return value;
  if (depth >= maxDepth) return "…";
  if (ArrayBuffer.isView(value)) return `(${value.byteLength} bytes)`;
  if (Array.isArray(value)) return redactList(value, depth + 1, left);
  try {
    if (value instanceof Error) return redactError(value, depth + 1, left);
    const { toJSON } = value as { readonly toJSON?: unknown };
    if (typeof toJSON === "function") return redactValue(toJSON.call(value), depth + 1, left);
    return redactEntries(value as Fields, depth + 1, left);
  } catch {
    return "(cannot be read)";
  }
}

function redactList(list: readonly unknown[], depth: number, left: Left): unknown[] {
  const shown: unknown[] = [];
  for (const value of list) {
    if (left.values <= 0) {
      shown.push(`… (${list.length - shown.length} more)`);
      break;
    }
    shown.push(redactValue(value, depth, left));
  }
  return shown;
}

function redactEntries(fields: Fields, depth: number, left: Left): Record<string, unknown> {
  // Names come from outside, `__proto__` among them.
  const shown = Object.create(null) as Record<string, unknown>;
  const hidesArguments = typeof fields.name === "string" && secretCommand.test(fields.name);
  for (const name in fields) {
    if (!Object.hasOwn(fields, name)) continue;
    if (left.values <= 0) {
      shown["…"] = "more fields were left out";
      break;
    }
    const shownName = name.length > maxNameLength || /[^\w.-]/.test(name) ? shortenName(name, left) : name;
    const isSecret = isSecretName(shownName) || (hidesArguments && name === "args");
    const value = fields[name];
    shown[shownName] =
      isSecret && value !== undefined && value !== null ? "[redacted]" : redactValue(value, depth, left);
  }
  return shown;
}

/** An error as a record: its kind, message and stack, its other properties, and its cause. */
function redactError(error: Error, depth: number, left: Left): Record<string, unknown> {
  const { name, message, stack, cause } = error;
  const known = { type: name, message, stack, ...(cause !== undefined && { cause }) };
  const parts = error instanceof AggregateError ? { errors: error.errors } : undefined;
  return redactEntries({ ...known, ...parts, ...error }, depth, left);
}

function shortenName(name: string, left: Left): string {
  const shown = redactText(name, maxNameLength);
  left.characters -= shown.length;
  return shown;
}

function shorten(text: string, left: Left): string {
  if (left.characters <= 0) return text === "" ? text : "…";
  const shown = redactText(text, Math.min(maxTextLength, left.characters));
  left.characters -= shown.length;
  return shown;
}
