import type { Family, Sample } from "./exposition.ts";

/** Counts by labels, in bounded number: anything beyond that is counted under `other`. */
export class Tally {
  readonly #labels: number;
  readonly #maxSeries: number;
  readonly #root: Branch = new Map();
  #series = 0;

  constructor(labels: number, maxSeries = 1_000) {
    this.#labels = labels;
    this.#maxSeries = maxSeries;
  }

  /** The counter of these labels. Frequent callers keep it. */
  at(...values: readonly string[]): Count {
    let branch = this.#root;
    const last = values.length - 1;
    for (let i = 0; i < last; i++) {
      const next = branch.get(values[i]!);
      if (next === undefined) return this.#add(values);
      branch = next as Branch;
    }
    return (branch.get(values[last]!) as Count | undefined) ?? this.#add(values);
  }

  *samples(): Generator<Sample> {
    yield* listSamples(this.#root, this.#labels, []);
  }

  /** The sum over all labels, or over those whose first value is this. */
  sum(first?: string): number {
    let sum = 0;
    for (const { labels, value } of this.samples()) if (first === undefined || labels[0] === first) sum += value;
    return sum;
  }

  #add(values: readonly string[]): Count {
    const full = this.#series >= this.#maxSeries;
    const path = full ? values.map(() => "other") : values;
    let branch = this.#root;
    for (const value of path.slice(0, -1)) {
      let next = branch.get(value) as Branch | undefined;
      if (next === undefined) {
        next = new Map();
        branch.set(value, next);
      }
      branch = next;
    }
    const leaf = path.at(-1)!;
    let count = branch.get(leaf) as Count | undefined;
    if (count === undefined) {
      count = { count: 0 };
      branch.set(leaf, count);
      this.#series += 1;
    }
    return count;
  }
}

export interface Count {
  count: number;
}

type Branch = Map<string, Branch | Count>;

function* listSamples(branch: Branch, depth: number, labels: readonly string[]): Generator<Sample> {
  for (const [value, next] of branch) {
    const path = [...labels, value];
    if (depth === 1) yield { labels: path, value: (next as Count).count };
    else yield* listSamples(next as Branch, depth - 1, path);
  }
}

/** A metric with a series for each of a tally's labels. */
export function tallied(name: string, help: string, labels: readonly string[], tally: Tally): Family {
  return { name, help, type: "counter", labels, samples: () => tally.samples() };
}
