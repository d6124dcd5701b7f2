import path from "node:path";
import { isNode, lineOf, parseModule, type SyntaxNode, walk } from "./module-syntax.ts";
import { isTypeScript, type SourceTree } from "./source-tree.ts";

/** What is guarded now, of what people read: of Markdown the prose, of TypeScript (once it is listed) the string literals. */
export const guarded: readonly string[] = [
  "README.md",
  "ARCHITECTURE.md",
  "CHANGELOG.md",
  "CONTRIBUTING.md",
  "docs/*.md",
  "docs/decisions/*.md",
  "packages/*/README.md",
  "packages/*/AGENTS.md",
  "examples/*/README.md",
  "packages/middleware/src/**/*.ts",
  "packages/pace/src/**/*.ts",
];

/** Turns of phrase that read as translated, and what to write. Only what is always wrong belongs here: a hit must be certain. */
export const dialect: readonly (readonly [phrase: RegExp, instead: string])[] = [
  [/\b(?:no|any|some|every)body\b/i, "the actor: the caller, the node, the operator, an unauthenticated client"],
  [/\bwho(?:m|so)?ever\b/i, "the actor, or “if you …”"],
  [/\b(?:for|to|by|from) who\b/i, "“for code that …”, “for clients that …”"],
  [/\bwho would rather\b/i, "“Prefer …? Run …”"],
  [/\b(?:nothing|none) (?:is|are|was|were) said\b/i, "“if none is given”, “by default”"],
  [/\bwhere none are\b/i, "“if there are none”"],
  [/\b(?:tells?|told|telling) of\b/i, "show, report, return, print"],
  [/\bin vain\b/i, "timed out, without success"],
  [/\bany more\b/i, "no longer"],
  [/\b(?:takes?|taken|taking|took) (?:it |them )?up\b/i, "apply, use"],
  [/\bfrom (?:\w+ )?\d[\d.]* on\b/i, "“20 or later”, “starting at 20”"],
  [/<while>/i, "<duration>"],
];

/** At most so many characters in a line of prose. Tables, code and link definitions cannot be broken, and may be longer. */
export const longestLine = 120;

/** What is not plain, one line each: `file:line says “…”: write …`, or `file:line has 130 characters`. */
export function findOddEnglish(tree: SourceTree, globs: readonly string[] = guarded): readonly string[] {
  const problems: string[] = [];
  for (const [file, text] of tree) {
    if (!globs.some((glob) => path.posix.matchesGlob(file, glob))) continue;
    const passages = isTypeScript(file) ? readLiterals(text) : [{ line: 1, text: readProse(text) }];
    for (const passage of passages) problems.push(...findDialect(file, passage));
    if (file.endsWith(".md")) problems.push(...findLongLines(file, text));
  }
  return problems;
}

interface Passage {
  readonly line: number;
  readonly text: string;
}

function findDialect(file: string, passage: Passage): readonly string[] {
  const problems: string[] = [];
  for (const [phrase, instead] of dialect) {
    // A phrase may go on in the next line.
    const anywhere = new RegExp(phrase.source.replaceAll(" ", "\\s+"), "gi");
    for (const { 0: found, index } of passage.text.matchAll(anywhere)) {
      const line = passage.line + passage.text.slice(0, index).split("\n").length - 1;
      problems.push(`${file}:${line} says “${found.replaceAll(/\s+/g, " ")}”: write ${instead}`);
    }
  }
  return problems;
}

function findLongLines(file: string, text: string): readonly string[] {
  const problems: string[] = [];
  for (const [index, line] of withoutFences(text).split("\n").entries()) {
    const { length } = [...line.trimEnd()];
    if (length <= longestLine || /^\s*(\||\[[^\]]+\]:\s)/.test(line)) continue;
    problems.push(`${file}:${index + 1} has ${length} characters`);
  }
  return problems;
}

/** A page without its code, in as many lines. */
function readProse(text: string): string {
  return withoutFences(text).replaceAll(/(`+)[^`]+?\1/g, blank);
}

function withoutFences(text: string): string {
  return text.replaceAll(/^([ \t]*)(`{3,}|~{3,})[^\n]*\n[\s\S]*?^[ \t]*\2[^\n]*$/gm, blank);
}

function blank(text: string): string {
  return text.replaceAll(/[^\n]/g, " ");
}

function readLiterals(text: string): readonly Passage[] {
  const passages: Passage[] = [];
  walk(parseModule(text), (node) => {
    const literal = findLiteral(node);
    if (literal !== undefined) passages.push({ line: lineOf(text, node), text: literal });
  });
  return passages;
}

/** What a string says, in the lines of its source: an escape is no letter, and no line either. */
function findLiteral(node: SyntaxNode): string | undefined {
  if (node.type === "Literal" && typeof node.value === "string") return withoutEscapes(String(node.raw));
  if (node.type !== "TemplateLiteral" || !Array.isArray(node.quasis)) return undefined;
  // What is put in may be any word.
  return node.quasis.map((quasi) => (isNode(quasi) ? withoutEscapes(findRaw(quasi)) : "")).join("…");
}

function findRaw(quasi: SyntaxNode): string {
  return (quasi.value as { readonly raw: string }).raw;
}

function withoutEscapes(raw: string): string {
  return raw.replaceAll(/\\./g, "  ");
}
