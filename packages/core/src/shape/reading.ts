import { type ErrorCode, type Problem, renderProblem, SluiceError } from "../errors.ts";

/** The path to a field: `["policies", 0, "limits", 1, "by"]`. */
export type Path = readonly (string | number)[];

/** Returned instead of a value that cannot be read. Its problem has been noted by then. */
export const invalid: unique symbol = Symbol("invalid");
export type Invalid = typeof invalid;

const maxDepth = 64;
export const maxProblems = 1_000;
/** Many times more than the largest legal policy file needs; it stops an alias bomb. */
const maxValues = 10_000_000;

const aboutKeys = new WeakSet<Problem>();

/** Whether a problem is with the last key of its path itself, rather than with the value under it. */
export function isAboutKey(problem: Problem): boolean {
  return aboutKeys.has(problem);
}

interface Reader<T> {
  read(value: unknown, reading: Reading): T | Invalid;
}

/**
 * One pass over a value from outside: knows where it is, and notes every problem on the way. Reading continues after a
 * problem; all is well if and only if `problems` is empty.
 */
export class Reading {
  readonly problems: Problem[] = [];
  readonly #path: (string | number)[];
  readonly #deepest: number;
  #valuesRead = 0;
  #inKey = false;

  /** `path` is the value's place in the document that it is part of. */
  constructor(path: Path = []) {
    this.#path = [...path];
    this.#deepest = path.length + maxDepth;
  }

  get path(): Path {
    return [...this.#path];
  }

  /** Reads a part, one step further in. */
  within<T>(step: string | number, shape: Reader<T>, value: unknown): T | Invalid {
    if (this.#path.length >= this.#deepest) return this.problem(`is nested more than ${maxDepth} levels deep`);
    this.#valuesRead++;
    if (this.#valuesRead > maxValues) {
      return this.#valuesRead === maxValues + 1 ? this.problem(`comes after ${maxValues} values, too many`) : invalid;
    }
    this.#path.push(step);
    const result = shape.read(value, this);
    this.#path.pop();
    return result;
  }

  /** Reads a key of the current object; its problems are problems with the key. */
  withinKey<T>(key: string, shape: Reader<T>): T | Invalid {
    this.#inKey = true;
    const result = this.within(key, shape, key);
    this.#inKey = false;
    return result;
  }

  /** Whether further problems are discarded, so that describing them can be skipped. */
  get isFull(): boolean {
    return this.problems.length > maxProblems;
  }

  /** Notes a problem with the value being read, or with a part of it. */
  problem(message: string, ...part: Path): Invalid {
    this.#note({ path: [...this.#path, ...part], message }, this.#inKey);
    return invalid;
  }

  /** Notes a problem with a key of the object being read. */
  keyProblem(key: string, message: string): Invalid {
    this.#note({ path: [...this.#path, key], message }, true);
    return invalid;
  }

  #note(problem: Problem, aboutKey: boolean): void {
    if (aboutKey) aboutKeys.add(problem);
    if (this.problems.length < maxProblems) this.problems.push(problem);
    else if (this.problems.length === maxProblems)
      this.problems.push({ path: [], message: `has more problems; these are the first ${maxProblems}` });
  }
}

/** The error for a document with problems: all of them as data, the first few in its message. */
export function problemsError(code: ErrorCode, what: string, problems: readonly Problem[]): SluiceError {
  const shown = problems.slice(0, 5).map((problem) => `\n  ${renderProblem(problem)}`);
  const more = problems.length > shown.length ? `\n  and ${problems.length - shown.length} more` : "";
  const count = problems.length === 1 ? "1 problem" : `${problems.length} problems`;
  return new SluiceError(code, `${count} in ${what}:${shown.join("")}${more}`, problems);
}

/** Describes a value for a message: `"text"`, `42`, `a list`. Long texts are cut. */
export function describeValue(value: unknown): string {
  if (value === undefined) return "missing";
  if (value === null) return "empty";
  if (typeof value === "string") return JSON.stringify(value.length > 40 ? `${value.slice(0, 39)}…` : value);
  if (typeof value === "number" || typeof value === "boolean") return String(value);
  if (Array.isArray(value)) return "a list";
  return typeof value === "object" ? "an object" : `a ${typeof value}`;
}
