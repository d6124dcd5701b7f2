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
  type YAMLError,
  type YAMLMap,
} from "yaml";
import type { Problem } from "../errors.ts";
import { isAboutKey, maxProblems, type Path } from "../shape/reading.ts";
import { expandDocument, isMergeKey } from "./expand-document.ts";

export const maxTextLength: number = 4 * 1024 * 1024;

/** A parsed text: its contents as plain data, and the place of each part. */
export interface YamlDocument {
  /** Undefined if the text could not be parsed at all; `problems` says why. */
  readonly contents: unknown;
  readonly problems: readonly Problem[];
  readonly warnings: readonly Problem[];
  /**
   * The problem with its line and column: those of the key for problems with a key, of the parent for a missing field.
   */
  withPlace(problem: Problem, aboutKey?: boolean): Problem;
  /** The source text of a plain value, such as `007`, if a path leads to one. */
  sourceAt(path: Path): string | undefined;
}

/** Parses YAML, and with it JSON. Never throws; errors in the text become problems with their places. */
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
      // Checked below: the parser compares each key with all before it, which takes minutes for a megabyte of keys.
      uniqueKeys: false,
      merge: true,
      logLevel: "error",
    });
    const createProblem = (error: YAMLError): Problem => ({
      path: [],
      message: whySyntaxIsWrong(error),
      place: placeAt(error.pos[0]),
    });
    const expanded = expandDocument(document);
    // A syntax error explains the rest.
    if (expanded.kind === "refused" && document.errors.length === 0)
      return unparsed(file, expanded.message, placeAt(expanded.offset));
    const { contents, targets, doubles: found } = expanded.kind === "refused" ? nothingExpanded : expanded;
    const finder = new OffsetFinder(document, targets);
    const doubles = found.slice(0, maxProblems).map(({ key, offset }): Problem => {
      const message = `has the key ${key} twice in one object; write it once`;
      return { path: [], message, place: placeAt(offset) };
    });
    return {
      // After a duplicate key the rest can still be read.
      contents: document.errors.length === 0 ? contents : undefined,
      problems: onePerLine([...document.errors.slice(0, maxProblems).map(createProblem), ...doubles]),
      warnings: document.warnings.slice(0, maxProblems).map(createProblem),
      withPlace: (problem, aboutKey = isAboutKey(problem)) =>
        problem.place === undefined ? { ...problem, place: placeAt(finder.find(problem.path, aboutKey)) } : problem,
      sourceAt: (path) => finder.sourceAt(path),
    };
  } catch (error) {
    return unparsed(file, whyUnreadable(error));
  }
}

const nothingExpanded = { contents: undefined, targets: new Map<Alias, Node>(), doubles: [] };

function whySyntaxIsWrong({ message }: YAMLError): string {
  if (/call stack/.test(message)) return tooDeep;
  return `cannot be read: ${message.replace(/\.$/, "")}`;
}

/** One slip often causes several errors in a line, of which the first says most. */
function onePerLine(problems: readonly Problem[]): readonly Problem[] {
  const lines = new Set<number | undefined>();
  return problems.filter(({ place }) => lines.size < lines.add(place?.line).size);
}

const tooDeep = "is nested too deeply to be read";

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
  return `cannot be read: ${error instanceof Error ? error.message : String(error)}`;
}

type Pair = YAMLMap["items"][number];

/** Finds the place in the text that a path leads to, or as far along it as the text goes. */
class OffsetFinder {
  readonly #document: Document;
  readonly #targets: ReadonlyMap<Alias, Node>;
  /** The pairs of a map by key, merged ones included, built on first use. */
  readonly #pairs = new Map<YAMLMap, ReadonlyMap<string, Pair>>();

  constructor(document: Document, targets: ReadonlyMap<Alias, Node>) {
    this.#document = document;
    this.#targets = targets;
  }

  find(path: Path, key: boolean): number {
    let node = this.#resolve(this.#document.contents);
    let offset = node?.range?.[0] ?? 0;
    for (const [depth, step] of path.entries()) {
      if (isSeq(node)) {
        node = this.#resolve(node.items[step as number]);
      } else if (isMap(node)) {
        const pair = this.#findPairs(node).get(String(step));
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
      else if (isMap(node)) node = this.#resolve(this.#findPairs(node).get(String(step))?.value);
      else return undefined;
    }
    return isScalar(node) ? node.source : undefined;
  }

  #findPairs(map: YAMLMap): ReadonlyMap<string, Pair> {
    const known = this.#pairs.get(map);
    if (known !== undefined) return known;
    const pairs = new Map<string, Pair>();
    for (const pair of map.items) {
      const name = isScalar(pair.key) ? String(pair.key.value) : undefined;
      // Of duplicate keys, the first.
      if (name !== undefined && !isMergeKey(pair.key) && !pairs.has(name)) pairs.set(name, pair);
    }
    for (const { key, value } of map.items) {
      if (!isMergeKey(key)) continue;
      const merged = this.#resolve(value);
      for (const one of isSeq(merged) ? merged.items : [merged]) {
        const other = this.#resolve(one);
        if (isMap(other))
          for (const [name, pair] of this.#findPairs(other)) if (!pairs.has(name)) pairs.set(name, pair);
      }
    }
    this.#pairs.set(map, pairs);
    return pairs;
  }

  #resolve(node: unknown): Node | undefined {
    if (isAlias(node)) return this.#targets.get(node);
    return isNode(node) ? node : undefined;
  }
}
