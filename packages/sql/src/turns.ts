import { PolicyStoreUnavailable } from "./errors.ts";

/** Admits one caller at a time, in the order in which they asked. */
export class Turns {
  readonly #what: string;
  readonly #waiting: (() => void)[] = [];
  #taken = false;

  constructor(what: string) {
    this.#what = what;
  }

  /** Resolves when it is the caller's turn, with the function that ends it. Rejects if that takes too long. */
  take(withinMs: number): Promise<() => void> {
    return new Promise((resolve, reject) => {
      const start = (): void => {
        clearTimeout(timer);
        this.#taken = true;
        resolve(this.#turn());
      };
      const timer = setTimeout(() => {
        const place = this.#waiting.indexOf(start);
        if (place === -1) return;
        this.#waiting.splice(place, 1);
        reject(new PolicyStoreUnavailable(`${this.#what} is busy: waited ${withinMs} ms for a turn`));
      }, withinMs);
      if (this.#taken) this.#waiting.push(start);
      else start();
    });
  }

  #turn(): () => void {
    let ended = false;
    return () => {
      if (ended) return;
      ended = true;
      const next = this.#waiting.shift();
      if (next === undefined) this.#taken = false;
      else next();
    };
  }
}
