import { SluiceError } from "sluice";
import { checkOptions as checkForms } from "sluice/internal";

export type OptionForm =
  | "function"
  | "boolean"
  | "settings"
  | "false or settings"
  | "statuses"
  | "names or function"
  | "clock"
  | "signal";

/** What an option may be, for callers without TypeScript. */
const forms: Readonly<Record<OptionForm, { readonly holds: (value: unknown) => boolean; readonly means: string }>> = {
  function: { holds: isFunction, means: "a function" },
  boolean: { holds: (value) => typeof value === "boolean", means: "true or false" },
  settings: { holds: isRecord, means: "an object" },
  "false or settings": { holds: (value) => value === false || isRecord(value), means: "false, or an object" },
  statuses: { holds: isStatuses, means: "a list of numbers" },
  "names or function": {
    holds: (value) => isNames(value) || isFunction(value),
    means: "a list of names, or a function",
  },
  clock: { holds: isClock, means: "an object with nowMs() and epochMs()" },
  signal: { holds: isSignal, means: "an AbortSignal" },
};

/** Throws an error that names the first option of a wrong type. Absent options pass. */
export function checkOptions<Options extends object>(
  options: Options,
  wanted: { readonly [Name in keyof Options]?: OptionForm },
): void {
  if (!isRecord(options)) throw invalidOption("options", `must be an object, but is ${describe(options)}`);
  for (const name of Object.keys(wanted) as (keyof Options & string)[]) {
    const form = wanted[name];
    const value = options[name];
    if (form === undefined || value === undefined || forms[form].holds(value)) continue;
    throw invalidOption(name, `must be ${forms[form].means}, but is ${describe(value)}`);
  }
}

/** The names of all options there are. */
export type OptionNames<Options> = { readonly [Name in keyof Required<Options>]: true };

/** Throws an error that names every option that does not exist, with the one that was probably meant. */
export function checkNames<Options extends object>(
  call: string,
  options: Options,
  names: OptionNames<Options>,
  foreign: Readonly<Record<string, string>> = {},
): void {
  const unchecked = Object.fromEntries(Object.keys(names).map((name) => [name, undefined]));
  checkForms<Record<string, unknown>>(Object.fromEntries(Object.entries(options)), unchecked, {
    name: call,
    code: "invalid_request",
    foreign,
  });
}

export function invalidOption(name: string, message: string): SluiceError {
  return new SluiceError("invalid_request", `${name} ${message}`, [{ path: [name], message }]);
}

function describe(value: unknown): string {
  if (value === null) return "null";
  if (Array.isArray(value)) return "a list";
  return typeof value === "object" || isFunction(value) ? `of type ${typeof value}` : String(value);
}

function isFunction(value: unknown): boolean {
  return typeof value === "function";
}

function isRecord(value: unknown): value is object {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function isStatuses(value: unknown): boolean {
  return Array.isArray(value) && value.every((one) => typeof one === "number");
}

function isNames(value: unknown): boolean {
  return Array.isArray(value) && value.every((one) => typeof one === "string");
}

function isClock(value: unknown): boolean {
  return (
    isRecord(value) && "nowMs" in value && "epochMs" in value && isFunction(value.nowMs) && isFunction(value.epochMs)
  );
}

/** A signal may be null, as in `fetch`, and of another implementation. */
function isSignal(value: unknown): boolean {
  return value === null || (isRecord(value) && "aborted" in value && "addEventListener" in value);
}
