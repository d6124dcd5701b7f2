/** The keys of one call, each once, numbered from 1. */
export class KeyList {
  readonly names: string[] = [];
  readonly #numbers = new Map<string, number>();

  /** The key's number, even if it is in the list already. */
  add(name: string): number {
    let number = this.#numbers.get(name);
    if (number === undefined) {
      number = this.names.push(name);
      this.#numbers.set(name, number);
    }
    return number;
  }
}
