import type { SubjectEntry, SubjectLimit } from "../policy/policy.ts";

/** What is known of particular subjects: their tier, and limits of their own. Asked on every check, so it answers at once. */
export interface SubjectDirectory {
  /** Whether anything at all is known by this dimension; lets a check skip the question. */
  knows(dimension: string): boolean;
  find(dimension: string, value: string): SubjectEntry | undefined;
}

/** A directory in memory. Entries from a policy file and entries set while running live side by side; the latter win. */
export class MemorySubjectDirectory implements SubjectDirectory {
  readonly #byDimension = new Map<string, Map<string, SubjectEntry>>();

  constructor(entries: readonly SubjectEntry[] = []) {
    for (const entry of entries) this.set(entry);
  }

  knows(dimension: string): boolean {
    return this.#byDimension.has(dimension);
  }

  find(dimension: string, value: string): SubjectEntry | undefined {
    return this.#byDimension.get(dimension)?.get(value);
  }

  set(entry: SubjectEntry): void {
    let byValue = this.#byDimension.get(entry.dimension);
    if (byValue === undefined) {
      byValue = new Map();
      this.#byDimension.set(entry.dimension, byValue);
    }
    byValue.set(entry.value, entry);
  }

  setTier(dimension: string, value: string, tier: string): void {
    this.set({ dimension, value, tier, limits: this.find(dimension, value)?.limits ?? [] });
  }

  /** Adds a custom limit, or with `untilMs` a temporary override, in place of one for the same policy and limit. */
  setLimit(dimension: string, value: string, limit: SubjectLimit): void {
    const known = this.find(dimension, value);
    const others = (known?.limits ?? []).filter((one) => one.policy !== limit.policy || one.limit !== limit.limit);
    this.set({ ...known, dimension, value, limits: [...others, limit] });
  }

  delete(dimension: string, value: string): void {
    const byValue = this.#byDimension.get(dimension);
    byValue?.delete(value);
    if (byValue?.size === 0) this.#byDimension.delete(dimension);
  }
}
