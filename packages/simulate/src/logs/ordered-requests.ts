import type { SimulatedRequest } from "../replay/simulated-request.ts";

export interface OrderedRequestsOptions {
  /** How many seconds a line may be behind the latest one of its file. */
  readonly windowSeconds: number;
  /** How many requests wait at most; beyond that the oldest second is let go early. */
  readonly maxWaiting: number;
}

interface Second {
  readonly requests: SimulatedRequest[];
  isSorted: boolean;
  latestMs: number;
}

/**
 * Requests of several files in order of time, in bounded memory. They wait by the second, until every file has come
 * further than that second by the window. Requests that are even later are left out, and counted.
 */
export class OrderedRequests {
  readonly #options: OrderedRequestsOptions;
  readonly #onRequest: (request: SimulatedRequest) => void;
  readonly #waiting: Map<number, Second> = new Map();
  /** The second that requests were last added to: nearly always that of the next one. */
  #current: Second | undefined;
  #currentSecond = Number.NaN;
  /** The earliest second that has not been let go. */
  #open = Number.NEGATIVE_INFINITY;
  #count = 0;
  #late = 0;

  constructor(options: OrderedRequestsOptions, onRequest: (request: SimulatedRequest) => void) {
    this.#options = options;
    this.#onRequest = onRequest;
  }

  /** How many came too late. */
  get late(): number {
    return this.#late;
  }

  /** Adds a request, and returns its second. */
  add(request: SimulatedRequest): number {
    const { timeMs } = request;
    const second = Math.floor(timeMs / 1000);
    if (second < this.#open) {
      this.#late += 1;
      return second;
    }
    const place = second === this.#currentSecond ? this.#current! : this.#findSecond(second);
    if (timeMs < place.latestMs || (timeMs === place.latestMs && request.recorded !== undefined))
      place.isSorted = false;
    else place.latestMs = timeMs;
    place.requests.push(request);
    this.#count += 1;
    return second;
  }

  /** Lets go of what is before `second`, less the window, and of what is too much. */
  advanceTo(second: number): void {
    this.#letGoBefore(second - this.#options.windowSeconds);
    while (this.#count > this.#options.maxWaiting) this.#letGoBefore(Math.min(...this.#waiting.keys()) + 1);
  }

  finish(): void {
    this.#letGoBefore(Number.POSITIVE_INFINITY);
  }

  #findSecond(second: number): Second {
    let found = this.#waiting.get(second);
    if (found === undefined) {
      found = { requests: [], isSorted: true, latestMs: Number.NEGATIVE_INFINITY };
      this.#waiting.set(second, found);
    }
    this.#current = found;
    this.#currentSecond = second;
    return found;
  }

  #letGoBefore(end: number): void {
    if (end <= this.#open) return;
    const seconds = [...this.#waiting.keys()].filter((second) => second < end).sort((one, other) => one - other);
    for (const second of seconds) {
      const { requests, isSorted } = this.#waiting.get(second)!;
      this.#waiting.delete(second);
      if (!isSorted) requests.sort(inOrder);
      for (const request of requests) this.#onRequest(request);
      this.#count -= requests.length;
    }
    if (seconds.includes(this.#currentSecond)) this.#currentSecond = Number.NaN;
    this.#open = end;
  }
}

function inOrder(one: SimulatedRequest, other: SimulatedRequest): number {
  return one.timeMs - other.timeMs || (one.recorded?.order ?? 0) - (other.recorded?.order ?? 0);
}
