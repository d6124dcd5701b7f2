import { normalizeEndpoint } from "../subject/endpoint-path.ts";

/**
 * Endpoint patterns in a prefix tree: literals, `{param}` and `*` (one segment), `**` (the rest, even if empty). A
 * search walks along the path's segments, however many patterns there are.
 */
export class EndpointTrie<T> {
  readonly #root: Node<T> = createNode();

  /** The value at a pattern, created if there is none. Patterns that match alike share one. */
  at(pattern: string, create: () => T): T {
    let node = this.#root;
    for (const segment of splitPath(normalizeEndpoint(pattern))) {
      if (segment === "**") {
        node.rest ??= { value: create() };
        return node.rest.value;
      }
      if (isOneSegment(segment)) {
        node.one ??= createNode();
        node = node.one;
      } else {
        let child = node.literals.get(segment);
        if (child === undefined) {
          child = createNode();
          node.literals.set(segment, child);
        }
        node = child;
      }
    }
    node.here ??= { value: create() };
    return node.here.value;
  }

  /** Every value whose pattern matches a reading of a path. An empty segment that was kept is a name like any other to `*`. */
  find(path: string): T[] {
    const found: T[] = [];
    walk(this.#root, splitPath(path), 0, found);
    return found;
  }
}

interface Node<T> {
  readonly literals: Map<string, Node<T>>;
  one: Node<T> | undefined;
  /** For paths that end here, and for those that end here or continue. */
  here: { readonly value: T } | undefined;
  rest: { readonly value: T } | undefined;
}

function createNode<T>(): Node<T> {
  return { literals: new Map(), one: undefined, here: undefined, rest: undefined };
}

function walk<T>(node: Node<T>, segments: readonly string[], depth: number, found: T[]): void {
  if (node.rest !== undefined) found.push(node.rest.value);
  const segment = segments[depth];
  if (segment === undefined) {
    if (node.here !== undefined) found.push(node.here.value);
    return;
  }
  // A trailing slash means nothing if there is a pattern without it. Otherwise it begins an empty name, as in some
  // routers.
  if (segment === "" && depth === segments.length - 1 && node.here !== undefined) {
    found.push(node.here.value);
    return;
  }
  const literal = node.literals.get(segment);
  if (literal !== undefined) walk(literal, segments, depth + 1, found);
  if (node.one !== undefined) walk(node.one, segments, depth + 1, found);
}

/** `/v1/orders` becomes `["v1", "orders"]`; the root has no segments. */
export function splitPath(path: string): string[] {
  return path === "/" || path === "" ? [] : path.slice(1).split("/");
}

function isOneSegment(segment: string): boolean {
  return segment === "*" || (segment.startsWith("{") && segment.endsWith("}"));
}

/**
 * How specific a pattern is, comparable as text: segment by segment a literal goes before one of any name, and that
 * before the rest; a pattern that ends goes before one whose rest is empty.
 */
export function patternSpecificity(pattern: string): string {
  const ranks = splitPath(pattern).map((segment) => (segment === "**" ? "0" : isOneSegment(segment) ? "1" : "2"));
  return `${ranks.join("")}3`;
}

/** Which segment of the path each `{param}` of a pattern names. */
export function findParams(pattern: string): ReadonlyMap<string, number> {
  const params = new Map<string, number>();
  for (const [index, segment] of splitPath(pattern).entries()) {
    if (segment.startsWith("{") && segment.endsWith("}")) params.set(segment.slice(1, -1), index);
  }
  return params;
}
