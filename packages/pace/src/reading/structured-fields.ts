/**
 * Reads structured fields (RFC 9651): lists and dictionaries of items with parameters. One pass, no backtracking; a field
 * with a single fault counts as absent, so the result is undefined.
 */

export type BareItem =
  | { readonly kind: "integer" | "decimal" | "date"; readonly value: number }
  | { readonly kind: "string" | "token" | "bytes" | "display"; readonly value: string }
  | { readonly kind: "boolean"; readonly value: boolean }
  /** An inner list: its items are checked, and not stored. */
  | { readonly kind: "list" };

export interface Member {
  readonly item: BareItem;
  readonly parameters: ReadonlyMap<string, BareItem>;
}

/** The members of a list, or undefined if the field is malformed. */
export function parseList(text: string): readonly Member[] | undefined {
  const members: Member[] = [];
  const scanner = new Scanner(text);
  return scanner.eachMember(() => {
    const member = scanner.readMember();
    if (member !== undefined) members.push(member);
    return member !== undefined;
  })
    ? members
    : undefined;
}

/** The members of a dictionary by key, or undefined if the field is malformed. The last member of a key counts. */
export function parseDictionary(text: string): ReadonlyMap<string, Member> | undefined {
  const members = new Map<string, Member>();
  const scanner = new Scanner(text);
  return scanner.eachMember(() => {
    const key = scanner.take(keyForm);
    if (key === undefined) return false;
    const member = scanner.takes("=") ? scanner.readMember() : scanner.readParameters({ kind: "boolean", value: true });
    if (member !== undefined) members.set(key, member);
    return member !== undefined;
  })
    ? members
    : undefined;
}

const keyForm = /[a-z*][a-z0-9_\-.*]*/y;
const numberForm = /-?(?:\d{1,12}\.\d{1,3}|\d{1,15})(?![\d.])/y;
const stringForm = /"(?:[\x20\x21\x23-\x5b\x5d-\x7e]|\\["\\])*"/y;
const tokenForm = /[A-Za-z*][!#$%&'*+\-.^_`|~0-9A-Za-z:/]*/y;
const bytesForm = /:[A-Za-z0-9+/]*={0,2}:/y;
const booleanForm = /\?[01]/y;
const dateForm = /@-?\d{1,15}(?![\d.])/y;
const displayForm = /%"(?:[\x20\x21\x23\x24\x26-\x7e]|%[0-9a-f]{2})*"/y;
const spaces = / */y;
const optionalSpace = /[ \t]*/y;

class Scanner {
  readonly #text: string;
  #at = 0;

  constructor(text: string) {
    this.#text = text.trim();
  }

  /** Reads members separated by commas until the end. False if one is malformed, or nothing follows a comma. */
  eachMember(read: () => boolean): boolean {
    if (this.#text === "") return true;
    for (;;) {
      if (!read()) return false;
      this.take(optionalSpace);
      if (this.#at === this.#text.length) return true;
      if (!this.takes(",")) return false;
      this.take(optionalSpace);
    }
  }

  readMember(): Member | undefined {
    const item = this.#text[this.#at] === "(" ? this.#readInnerList() : this.#readBareItem();
    return item === undefined ? undefined : this.readParameters(item);
  }

  readParameters(item: BareItem): Member | undefined {
    const parameters = new Map<string, BareItem>();
    while (this.takes(";")) {
      this.take(spaces);
      const key = this.take(keyForm);
      if (key === undefined) return undefined;
      const value: BareItem | undefined = this.takes("=") ? this.#readBareItem() : { kind: "boolean", value: true };
      if (value === undefined) return undefined;
      parameters.set(key, value);
    }
    return { item, parameters };
  }

  #readInnerList(): BareItem | undefined {
    this.#at += 1;
    for (;;) {
      this.take(spaces);
      if (this.takes(")")) return { kind: "list" };
      const item = this.#readBareItem();
      if (item === undefined || this.readParameters(item) === undefined) return undefined;
      const next = this.#text[this.#at];
      if (next !== " " && next !== ")") return undefined;
    }
  }

  #readBareItem(): BareItem | undefined {
    const first = this.#text[this.#at];
    if (first === undefined) return undefined;
    if (first === '"') {
      const quoted = this.take(stringForm);
      return quoted === undefined
        ? undefined
        : { kind: "string", value: quoted.slice(1, -1).replace(/\\(["\\])/g, "$1") };
    }
    if (/[-\d]/.test(first)) {
      const digits = this.take(numberForm);
      return digits === undefined
        ? undefined
        : { kind: digits.includes(".") ? "decimal" : "integer", value: Number(digits) };
    }
    if (first === "?") {
      const flag = this.take(booleanForm);
      return flag === undefined ? undefined : { kind: "boolean", value: flag === "?1" };
    }
    if (first === "@") {
      const date = this.take(dateForm);
      return date === undefined ? undefined : { kind: "date", value: Number(date.slice(1)) };
    }
    const [kind, form] =
      first === ":" ? (["bytes", bytesForm] as const) : first === "%" ? (["display", displayForm] as const) : token;
    const value = this.take(form);
    return value === undefined ? undefined : { kind, value };
  }

  takes(character: string): boolean {
    if (this.#text[this.#at] !== character) return false;
    this.#at += 1;
    return true;
  }

  /** The text that a form matches at this position, or undefined. */
  take(form: RegExp): string | undefined {
    form.lastIndex = this.#at;
    const found = form.exec(this.#text)?.[0];
    this.#at += found?.length ?? 0;
    return found;
  }
}

const token = ["token", tokenForm] as const;
