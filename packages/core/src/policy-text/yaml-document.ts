import {
  type Alias,
  type Document,
  isAlias,
  isMap,
  isNode,
  isScalar,
  isSeq,
  LineCounter,
  type Node,
  parseDocument,
  visit,
  type YAMLError,
  type YAMLMap,
} from "yaml";
import type { Problem } from "../errors.ts";
import { isAboutKey, type Path } from "../shape/reading.ts";

export const maxTextLength: number = 4 * 1024 * 1024;
const maxAliases = 1_000;

/** A parsed text: its contents as plain data, and where each part of them stands. */
export interface YamlDocument {
  /** Undefined where the text could not be parsed at all; `problems` says why. */
  readonly contents: unknown;
  readonly problems: readonly Problem[];
  readonly warnings: readonly Problem[];
  /** The problem with its line and column: of the key for problems with a key, of the parent for what is missing. */
  withPlace(problem: Problem): Problem;
  /** A plain value as it is written, such as `007`, where a path leads to one. */
  sourceAt(path: Path): string | undefined;
}

/** Parses YAML, and with it JSON. Never throws; what is wrong with the text is told as problems with their places. */
export function parseYamlDocument(text: string, file: string | undefined): YamlDocument {
  if (text.length > maxTextLength)
    return unparsed(file, `is ${text.length} characters long; at most ${maxTextLength} are read, so split it`);
  const lines = new LineCounter();
  const placeAt = (offset: number): NonNullable<Problem["place"]> => {
    const { line, col } = lines.linePos(offset);
    return { ...(file === undefined ? undefined : { file }), line: Math.max(line, 1), column: Math.max(col, 1) };
  };
  try {
    const document = parseDocument(text, {
      lineCounter: lines,
      prettyErrors: false,
      uniqueKeys: true,
      merge: true,
      logLevel: "error",
    });
    const problemOf = (error: YAMLError): Problem => ({
      path: [],
      message: whySyntaxIsWrong(error, text),
      place: placeAt(error.pos[0]),
    });
    const circular = findCircularAlias(document);
    if (circular !== undefined) {
      const place = placeAt(circular.range?.[0] ?? 0);
      return unparsed(file, `uses the anchor ${circular.source} inside of itself`, place);
    }
    const finder = new OffsetFinder(document);
    // After a key that is there twice the rest can be read all the same.
    const readable = document.errors.every((error) => error.code === "DUPLICATE_KEY");
    return {
      contents: readable ? document.toJS({ maxAliasCount: maxAliases }) : undefined,
      problems: onePerLine(document.errors.map(problemOf)),
      warnings: document.warnings.map(problemOf),
      withPlace: (problem) =>
        problem.place === undefined
          ? { ...problem, place: placeAt(finder.find(problem.path, isAboutKey(problem))) }
          : problem,
      sourceAt: (path) => finder.sourceAt(path),
    };
  } catch (error) {
    return unparsed(file, whyUnreadable(error));
  }
}

function whySyntaxIsWrong({ code, message, pos }: YAMLError, text: string): string {
  if (code === "DUPLICATE_KEY") {
    const key = /^["']?([^"':,{}\n]{0,64})/.exec(text.slice(pos[0], pos[0] + 100))?.[1]?.trim();
    return `has the key ${key} twice in one object; write it once`;
  }
  if (/call stack/.test(message)) return tooDeep;
  return `cannot be read: ${message.replace(/\.$/, "")}`;
}

/** One slip often makes several errors in a line, of which the first tells most. */
function onePerLine(problems: readonly Problem[]): readonly Problem[] {
  return problems.filter((one, at) => problems.findIndex((other) => other.place?.line === one.place?.line) === at);
}

const tooDeep = "is nested too deeply to be read";

/** An alias in what it stands for: followed, it would never end. */
function findCircularAlias(document: Document): Alias | undefined {
  const anchored = new Map<string, unknown>();
  let circular: Alias | undefined;
  visit(document, {
    Node(_key, node, path) {
      if (!isAlias(node)) {
        if (node.anchor !== undefined) anchored.set(node.anchor, node);
        return undefined;
      }
      if (!path.includes(anchored.get(node.source) as Node)) return undefined;
      circular = node;
      return visit.BREAK;
    },
  });
  return circular;
}

function unparsed(
  file: string | undefined,
  message: string,
  place: NonNullable<Problem["place"]> = { ...(file === undefined ? undefined : { file }), line: 1, column: 1 },
): YamlDocument {
  return {
    contents: undefined,
    problems: [{ path: [], message, place }],
    warnings: [],
    withPlace: (problem) => ({ ...problem, place: problem.place ?? place }),
    sourceAt: () => undefined,
  };
}

function whyUnreadable(error: unknown): string {
  if (error instanceof RangeError) return tooDeep;
  if (error instanceof ReferenceError) return `uses an anchor too often; at most ${maxAliases} aliases are followed`;
  return `cannot be read: ${error instanceof Error ? error.message : String(error)}`;
}

/** Finds where a path leads in the text, or as far along it as the text goes. */
class OffsetFinder {
  readonly #document: Document;
  /** Following an alias walks the whole document, so each is followed once. */
  readonly #aliases = new Map<Alias, Node | undefined>();

  constructor(document: Document) {
    this.#document = document;
  }

  find(path: Path, key: boolean): number {
    let node = this.#resolve(this.#document.contents);
    let offset = node?.range?.[0] ?? 0;
    for (const [depth, step] of path.entries()) {
      if (isSeq(node)) {
        node = this.#resolve(node.items[step as number]);
      } else if (isMap(node)) {
        const pair = this.#pairAt(node, step);
        if (pair === undefined) break;
        const keyOffset = isNode(pair.key) ? pair.key.range?.[0] : undefined;
        if (key && depth === path.length - 1) return keyOffset ?? offset;
        node = this.#resolve(pair.value);
        offset = keyOffset ?? offset;
      } else break;
      if (node === undefined) break;
      offset = node.range?.[0] ?? offset;
    }
    return offset;
  }

  sourceAt(path: Path): string | undefined {
    let node = this.#resolve(this.#document.contents);
    for (const step of path) {
      if (isSeq(node)) node = this.#resolve(node.items[step as number]);
      else if (isMap(node)) node = this.#resolve(this.#pairAt(node, step)?.value);
      else return undefined;
    }
    return isScalar(node) ? node.source : undefined;
  }

  /** A key of the map itself, else of the maps that are merged into it, the first of which counts. */
  #pairAt({ items }: YAMLMap, step: Path[number]): YAMLMap["items"][number] | undefined {
    const own = items.find(({ key }) => isScalar(key) && String(key.value) === String(step));
    if (own !== undefined) return own;
    for (const { key, value } of items) {
      if (!isScalar(key) || key.source !== "<<") continue;
      const merged = this.#resolve(value);
      for (const one of isSeq(merged) ? merged.items : [merged]) {
        const map = this.#resolve(one);
        const pair = isMap(map) ? this.#pairAt(map, step) : undefined;
        if (pair !== undefined) return pair;
      }
    }
    return undefined;
  }

  #resolve(node: unknown): Node | undefined {
    if (!isAlias(node)) return isNode(node) ? node : undefined;
    if (!this.#aliases.has(node)) this.#aliases.set(node, node.resolve(this.#document));
    return this.#aliases.get(node);
  }
}
