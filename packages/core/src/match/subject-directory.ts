import type { SubjectEntry, SubjectLimit } from "../policy/policy.ts";
import { canonicalValue } from "../subject/canonical-value.ts";

/** What is known of particular subjects: their tiers and overrides. Read on every check, so it answers at once. */
export interface SubjectDirectory {
  /** How many dimensions have known subjects. 0 lets a check skip all lookups. */
  readonly size: number;
  /** By the value as it is counted: addresses, endpoints and methods in their normal form. */
  find(dimension: string, value: string): SubjectEntry | undefined;
}

/** A directory in memory. Entries from a policy file and entries set while running coexist; the latter win. */
export class MemorySubjectDirectory implements SubjectDirectory {
  readonly #byDimension = new Map<string, Map<string, SubjectEntry>>();
  readonly #ipv6PrefixBits: number | undefined;

  /** `ipv6PrefixBits` is that of the limiter it is used by. */
  constructor(entries: readonly SubjectEntry[] = [], ipv6PrefixBits?: number) {
    this.#ipv6PrefixBits = ipv6PrefixBits;
    for (const entry of entries) this.set(entry);
  }

  get size(): number {
    return this.#byDimension.size;
  }

  find(dimension: string, value: string): SubjectEntry | undefined {
    return this.#byDimension.get(dimension)?.get(value);
  }

  set(written: SubjectEntry): void {
    const entry = { ...written, value: this.#canonical(written.dimension, written.value) };
    let byValue = this.#byDimension.get(entry.dimension);
    if (byValue === undefined) {
      byValue = new Map();
      this.#byDimension.set(entry.dimension, byValue);
    }
    byValue.set(entry.value, entry);
  }

  setTier(dimension: string, value: string, tier: string): void {
    const known = this.find(dimension, this.#canonical(dimension, value));
    this.set({ dimension, value, tier, limits: known?.limits ?? [] });
  }

  /** Adds a custom limit, or with `untilMs` a temporary override, in place of one for the same policy and limit. */
  setLimit(dimension: string, value: string, limit: SubjectLimit): void {
    const known = this.find(dimension, this.#canonical(dimension, value));
    const others = (known?.limits ?? []).filter((one) => one.policy !== limit.policy || one.limit !== limit.limit);
    this.set({ ...known, dimension, value, limits: [...others, limit] });
  }

  delete(dimension: string, value: string): void {
    const byValue = this.#byDimension.get(dimension);
    byValue?.delete(this.#canonical(dimension, value));
    if (byValue?.size === 0) this.#byDimension.delete(dimension);
  }

  #canonical(dimension: string, value: string): string {
    return canonicalValue(dimension, value, this.#ipv6PrefixBits);
  }
}
