import { type Alias, type Document, isAlias, isMap, isPair, isScalar, isSeq, type Node, type YAMLMap } from "yaml";

/** The most values that aliases and merge keys may add to those written in a text. */
const maxAddedValues = 100_000;

/** A document as plain data, or the first thing that keeps it from being read. */
export type ExpandedDocument =
  | {
      readonly kind: "expanded";
      readonly contents: unknown;
      /** The target of each alias. */
      readonly targets: ReadonlyMap<Alias, Node>;
      /** Keys that occur twice in one object: all but the first of each. */
      readonly doubles: readonly { readonly key: string; readonly offset: number }[];
    }
  | { readonly kind: "refused"; readonly message: string; readonly offset: number };

/**
 * Plain data from a YAML document, in one pass over the text. An alias costs as many values as it stands for, so a text
 * that is short only because its aliases multiply is refused before it takes time or memory. Values behind an alias are
 * shared, not copied; the keys of a merged map are copied, one level deep.
 */
export function expandDocument(document: Document): ExpandedDocument {
  const expansion = new Expansion();
  try {
    const contents = expansion.read(document.contents);
    return { kind: "expanded", contents, targets: expansion.targets, doubles: expansion.doubles };
  } catch (error) {
    if (error instanceof Refusal) return { kind: "refused", message: error.message, offset: error.offset };
    throw error;
  }
}

class Refusal extends Error {
  readonly offset: number;

  constructor(node: unknown, message: string) {
    super(message);
    this.offset = findOffset(node);
  }
}

type Anchored =
  | { readonly state: "open" }
  | { readonly state: "read"; readonly node: Node; readonly value: unknown; readonly size: number };

const open: Anchored = { state: "open" };

class Expansion {
  readonly targets = new Map<Alias, Node>();
  readonly doubles: { readonly key: string; readonly offset: number }[] = [];
  /** The latest node under each anchor: an anchor may be set again further down. */
  readonly #anchored = new Map<string, Anchored>();
  /** Values so far; those behind aliases count each time. */
  #values = 0;
  #added = 0;

  read(node: unknown): unknown {
    if (isAlias(node)) return this.#follow(node);
    const anchor = isScalar(node) || isMap(node) || isSeq(node) ? node.anchor : undefined;
    if (anchor === undefined) return this.#readPlain(node);
    const before = this.#values;
    this.#anchored.set(anchor, open);
    const value = this.#readPlain(node);
    this.#anchored.set(anchor, { state: "read", node: node as Node, value, size: this.#values - before });
    return value;
  }

  #readPlain(node: unknown): unknown {
    this.#values++;
    if (isMap(node)) return this.#readMap(node);
    if (isSeq(node)) return node.items.map((item) => this.read(item));
    if (isPair(node)) return { [this.#readKey(node.key)]: this.read(node.value) };
    return isScalar(node) ? node.value : null;
  }

  #readMap({ items }: YAMLMap): Readonly<Record<string, unknown>> {
    const map: Record<string, unknown> = {};
    const own = new Set<string>();
    for (const { key, value } of items) {
      if (isMergeKey(key)) {
        this.#merge(map, this.read(value), value ?? key);
        continue;
      }
      const name = this.#readKey(key);
      if (own.has(name)) this.doubles.push({ key: name.slice(0, 64), offset: findOffset(key) });
      own.add(name);
      set(map, name, this.read(value));
    }
    return map;
  }

  #readKey(key: unknown): string {
    const value = this.read(key);
    if (typeof value === "object" && value !== null) throw new Refusal(key, "has a list or an object as a key");
    return value === null ? "" : String(value);
  }

  /** A map's own keys stay, and the first of several merged maps wins. */
  #merge(map: Record<string, unknown>, merged: unknown, at: unknown): void {
    for (const source of Array.isArray(merged) ? merged : [merged]) {
      if (typeof source !== "object" || source === null || Object.getPrototypeOf(source) !== Object.prototype)
        throw new Refusal(at, "merges (<<) what is not an object; name an object, or a list of objects");
      for (const [name, value] of Object.entries(source)) if (!Object.hasOwn(map, name)) set(map, name, value);
    }
  }

  #follow(alias: Alias): unknown {
    const found = this.#anchored.get(alias.source);
    if (found === undefined)
      throw new Refusal(alias, `uses the anchor ${alias.source}, which is not set before it; write &${alias.source}`);
    if (found.state === "open") throw new Refusal(alias, `uses the anchor ${alias.source} inside of itself`);
    this.#values += found.size;
    this.#added += found.size;
    if (this.#added > maxAddedValues)
      throw new Refusal(
        alias,
        `has aliases that add more than ${maxAddedValues} values to the text, counted up to *${alias.source} here; write less by aliases and merge keys, or split the text`,
      );
    this.targets.set(alias, found.node);
    return found.value;
  }
}

export function isMergeKey(key: unknown): boolean {
  return isScalar(key) && typeof key.value === "symbol";
}

/** Also for names such as `__proto__`, which an assignment would treat specially. */
function set(map: Record<string, unknown>, name: string, value: unknown): void {
  if (name === "__proto__")
    Object.defineProperty(map, name, { value, writable: true, enumerable: true, configurable: true });
  else map[name] = value;
}

function findOffset(node: unknown): number {
  return (node as Node | null | undefined)?.range?.[0] ?? 0;
}
