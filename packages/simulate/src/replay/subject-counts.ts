/** How many subjects may still be counted one by one, over all limits together. */
export interface SubjectBudget {
  left: number;
}

const firstCapacity = 1024;

/** Counts of each subject of a limit, exact for as many subjects as the budget has room for. */
export class SubjectCounts {
  readonly #budget: SubjectBudget;
  readonly #places: Map<string, number> = new Map();
  readonly names: string[] = [];
  requests: Float64Array = new Float64Array(firstCapacity);
  newlyDenied: Float64Array = new Float64Array(firstCapacity);
  denied: Float64Array = new Float64Array(firstCapacity);

  constructor(budget: SubjectBudget) {
    this.#budget = budget;
  }

  get size(): number {
    return this.names.length;
  }

  get capacity(): number {
    return this.requests.length;
  }

  /** The place of a subject, a new one if it is new. Undefined if there is no room for another. */
  findPlace(subject: string): number | undefined {
    const known = this.#places.get(subject);
    if (known !== undefined) return known;
    if (this.#budget.left === 0) return undefined;
    this.#budget.left -= 1;
    const place = this.names.length;
    this.#places.set(subject, place);
    this.names.push(subject);
    if (place === this.capacity) {
      this.requests = doubled(this.requests);
      this.newlyDenied = doubled(this.newlyDenied);
      this.denied = doubled(this.denied);
    }
    return place;
  }

  count(place: number, denied: boolean, newlyDenied: boolean): void {
    this.requests[place]! += 1;
    if (denied) this.denied[place]! += 1;
    if (newlyDenied) this.newlyDenied[place]! += 1;
  }
}

/** The same values with room for as many again. */
export function doubled(values: Float64Array): Float64Array<ArrayBuffer> {
  const grown = new Float64Array(values.length * 2);
  grown.set(values);
  return grown;
}
