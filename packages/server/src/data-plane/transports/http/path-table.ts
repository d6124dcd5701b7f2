import { SluiceError } from "sluice";
import type { PathParameters } from "./exchange.ts";

/** What is at a path, by method, and the values of `{id}` and the like in it. */
export interface FoundPath<T> {
  readonly byMethod: ReadonlyMap<string, T>;
  readonly params: PathParameters;
}

interface Pattern<T> {
  readonly steps: readonly string[];
  readonly byMethod: Map<string, T>;
}

/** Paths, some with `{id}` in them, and what each method does there. */
export class PathTable<T> {
  readonly #exact = new Map<string, FoundPath<T> & { readonly byMethod: Map<string, T> }>();
  readonly #patterns = new Map<string, Pattern<T>>();

  add(path: string, methods: readonly string[], what: T): void {
    const place = path.includes("{") ? this.#patternAt(path) : this.#exactAt(path);
    for (const method of methods) place.byMethod.set(method, what);
  }

  /** Throws `invalid_request` if the path has a `%` that begins no escape. */
  find(url: string): FoundPath<T> | undefined {
    // The usual request: a path exactly as in the table.
    const found = this.#exact.get(url);
    if (found !== undefined) return found;
    const path = urlPath(url);
    if (!path.includes("%")) return this.#exact.get(path) ?? this.#findPattern(path.split("/"));
    const taken = path.split("/").map(decode);
    // An escaped slash is text, and separates nothing.
    const hasSlash = taken.some((step) => step.includes("/"));
    return (hasSlash ? undefined : this.#exact.get(taken.join("/"))) ?? this.#findPattern(taken);
  }

  #findPattern(taken: readonly string[]): FoundPath<T> | undefined {
    for (const { steps, byMethod } of this.#patterns.values()) {
      if (!fits(steps, taken)) continue;
      const params: Record<string, string> = {};
      for (const [at, step] of steps.entries()) if (step.startsWith("{")) params[step.slice(1, -1)] = taken[at]!;
      return { byMethod, params };
    }
    return undefined;
  }

  #exactAt(path: string): { readonly byMethod: Map<string, T> } {
    const place = this.#exact.get(path) ?? { byMethod: new Map<string, T>(), params: {} };
    this.#exact.set(path, place);
    return place;
  }

  #patternAt(path: string): { readonly byMethod: Map<string, T> } {
    const place = this.#patterns.get(path) ?? { steps: path.split("/"), byMethod: new Map<string, T>() };
    this.#patterns.set(path, place);
    return place;
  }
}

/** The path of a request target: without the query, and without the origin that a proxy's client puts before it. */
export function urlPath(url: string): string {
  const path = url.replace(/[?#].*$/s, "");
  return path.startsWith("/") ? path : path.replace(/^https?:\/\/[^/]*/i, "");
}

function fits(steps: readonly string[], taken: readonly string[]): boolean {
  return (
    steps.length === taken.length &&
    steps.every((step, at) => (step.startsWith("{") ? taken[at] !== "" : step === taken[at]))
  );
}

function decode(step: string): string {
  try {
    return decodeURIComponent(step);
  } catch {
    throw new SluiceError("invalid_request", "the path has a % that begins no escape; write a percent sign as %25");
  }
}
