import { type ErrorCode, type Problem, SluiceError } from "./errors.ts";
import { describeValue } from "./shape/reading.ts";
import { suggest } from "./shape/suggest.ts";

/** The form of an option, checked at run time for callers without a compiler. */
export interface OptionForm {
  holds(value: unknown): boolean;
  /** Completes `must be …`: `a function`. */
  readonly wanted: string;
  /** Whether the value stays out of messages, as a password does. */
  readonly secret?: boolean;
}

/** The form of every option. Undefined: the code that uses the option checks it. */
export type OptionForms<Options> = { readonly [Name in keyof Required<Options>]: OptionForm | undefined };

export interface CheckedCall {
  /** The name in messages: `createLimiter`. */
  readonly name: string;
  readonly code: ErrorCode;
  /** Options of other libraries that are often tried, and what to write instead. */
  readonly foreign?: Readonly<Record<string, string>>;
}

export const aFunction: OptionForm = { holds: (value) => typeof value === "function", wanted: "a function" };
export const aText: OptionForm = { holds: (value) => typeof value === "string", wanted: "a text" };
export const trueOrFalse: OptionForm = { holds: (value) => typeof value === "boolean", wanted: "true or false" };
export const anObject: OptionForm = { holds: isObject, wanted: "an object" };

/** An object that has these methods. */
export function withMethods(names: readonly string[], wanted: string): OptionForm {
  const holds = (value: unknown): boolean =>
    isObject(value) && names.every((name) => typeof (value as Record<string, unknown>)[name] === "function");
  return { holds, wanted };
}

export const aClock: OptionForm = withMethods(["nowMs", "epochMs"], "an object with nowMs() and epochMs()");

export function oneOf(words: readonly unknown[]): OptionForm {
  return { holds: (value) => words.includes(value), wanted: `one of ${words.join(", ")}` };
}

/** A number within bounds, both included. */
export function numberFrom(min: number, max: number = Number.POSITIVE_INFINITY): OptionForm {
  const holds = (value: unknown): boolean => typeof value === "number" && value >= min && value <= max;
  return {
    holds,
    wanted: max === Number.POSITIVE_INFINITY ? `a number of at least ${min}` : `a number from ${min} to ${max}`,
  };
}

/**
 * More unknown keys than any call has options: something else was passed in, and its keys are not listed one by one.
 */
const mostUnknown = 5;

/**
 * Refuses what the types refuse, for apps in plain JavaScript: unknown options, with the one that was probably meant,
 * and values of another form. Names every problem. An option that is undefined is absent.
 */
export function checkOptions<Options extends object>(
  options: Options,
  forms: OptionForms<Options>,
  { name: call, code, foreign = {} }: CheckedCall,
): void {
  if (!isObject(options)) {
    const message = `of ${call} must be an object, but is ${describeValue(options)}`;
    throw new SluiceError(code, `the options ${message}`, [{ path: [], message }]);
  }
  const problems: Problem[] = [];
  const known = Object.keys(forms);
  for (const [name, value] of Object.entries(options)) {
    if (value === undefined || Object.hasOwn(forms, name)) continue;
    const instead = Object.hasOwn(foreign, name) ? foreign[name] : undefined;
    problems.push({ path: [name], message: `is not an option of ${call}; ${instead ?? meant(name, known)}` });
    if (problems.length === mostUnknown) break;
  }
  for (const name of known as (keyof Options & string)[]) {
    const form = forms[name];
    const value: unknown = options[name];
    if (form === undefined || value === undefined || form.holds(value)) continue;
    const given = form.secret === true ? "" : `, but is ${describeValue(value)}`;
    problems.push({ path: [name], message: `must be ${form.wanted}${given}` });
  }
  if (problems.length > 0) throw optionsError(code, problems);
}

/** The error for options, with every problem in its message. */
export function optionsError(code: ErrorCode, problems: readonly Problem[]): SluiceError {
  const message = problems.map((problem) => `${problem.path.join(".")} ${problem.message}`).join("; ");
  return new SluiceError(code, message, problems);
}

function meant(name: string, known: readonly string[]): string {
  const suggestion = suggest(name, known);
  return suggestion === undefined ? `its options are ${known.join(", ")}` : `did you mean ${suggestion}?`;
}

function isObject(value: unknown): value is object {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
