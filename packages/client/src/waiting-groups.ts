import type { Question, QuestionKind } from "./exchange.ts";

interface Waiting {
  readonly question: Question;
  readonly patienceMs: number;
  readonly settled: boolean;
}

/**
 * Questions that wait to be sent, in groups by kind and by time left: questions that travel together have about the
 * same deadline.
 */
export class WaitingGroups<T extends Waiting> implements Iterable<T> {
  readonly #groups = new Map<string, readonly T[]>();
  #length = 0;

  get length(): number {
    return this.#length;
  }

  push(one: T): void {
    const name = groupName(one);
    const group = this.#groups.get(name) as T[] | undefined;
    if (group === undefined) this.#groups.set(name, [one]);
    else group.push(one);
    this.#length += 1;
  }

  /** Hands out each group. `take` returns how many it takes, from the front. */
  takeFromEach(take: (group: readonly T[]) => number): void {
    for (const [name, group] of this.#groups) {
      const taken = take(group);
      this.#length -= taken;
      if (taken === group.length) this.#groups.delete(name);
      else if (taken > 0) this.#groups.set(name, group.slice(taken));
    }
  }

  takeAll(): readonly T[] {
    const all = [...this];
    this.#groups.clear();
    this.#length = 0;
    return all;
  }

  dropSettled(): void {
    this.#length = 0;
    for (const [name, group] of this.#groups) {
      const open = group.filter(({ settled }) => !settled);
      this.#length += open.length;
      if (open.length === 0) this.#groups.delete(name);
      else if (open.length < group.length) this.#groups.set(name, open);
    }
  }

  *[Symbol.iterator](): Generator<T> {
    for (const group of this.#groups.values()) yield* group;
  }
}

/** The names of groups, created once. They depend on nothing else, so all lines share them. */
const groupNames = new Map<QuestionKind, readonly string[]>();

/** Budgets of one group differ by less than a factor of two. */
function groupName({ question: { kind }, patienceMs }: Waiting): string {
  let names = groupNames.get(kind);
  if (names === undefined) {
    names = Array.from({ length: 32 }, (_, i) => `${kind} ${i}`);
    groupNames.set(kind, names);
  }
  return names[31 - Math.clz32(patienceMs)] ?? kind;
}
