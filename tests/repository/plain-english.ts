import path from "node:path";
import { findLine, isNode, parseModule, type SyntaxNode, walk } from "./module-syntax.ts";
import { isTypeScript, type SourceTree } from "./source-tree.ts";

/** Pages whose prose is guarded. */
const pages: readonly string[] = [
  "README.md",
  "ARCHITECTURE.md",
  "CHANGELOG.md",
  "CONTRIBUTING.md",
  "docs/*.md",
  "docs/decisions/*.md",
  "packages/*/README.md",
  "packages/*/AGENTS.md",
  "examples/*/README.md",
];

/** Code whose comments and strings are guarded, tests included: a folder is added here once it is plain. */
const code: readonly string[] = [
  "bench/**/*.ts",
  "packages/cli/src/**/*.ts",
  "packages/client/src/**/*.ts",
  "packages/console/src/**/*.{ts,tsx}",
  "packages/core/src/**/*.ts",
  "packages/middleware/src/**/*.ts",
  "packages/pace/src/**/*.ts",
  "packages/protocol/src/**/*.ts",
  "packages/redis/src/**/*.{ts,lua}",
  "packages/simulate/src/**/*.ts",
  "packages/sql/src/**/*.ts",
  "packages/server/src/{boot,command,compat,control-plane,observe,settings,testing}/**/*.ts",
  "packages/server/src/data-plane/{access,counters,policy-files,service,status}/**/*.ts",
  "packages/server/src/data-plane/transports/*.ts",
  "packages/server/src/data-plane/transports/{envoy,grpc,http,resp}/**/*.ts",
  "tests/{control-plane,docs,examples,faults,frameworks,gateways,leases,limiter,packages,remote,restart}/**/*.ts",
];

export const guarded: readonly string[] = [...pages, ...code];

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
  [/\b(?:takes?|taken|taking|took) (?:it |them )?up\b(?! to\b)/i, "apply, use"],
  [/\bfrom (?:\w+ )?\d[\d.]* on\b/i, "“20 or later”, “starting at 20”"],
  [/<while>/i, "<duration>"],
  [/\b(?:is|are|was|were) away\b/i, "unavailable"],
  [/\bwhat is no (?!longer\b)/i, "“what is not a …”, “an invalid …”"],
  [/\bhears? of\b/i, "is notified of, receives"],
];

/** The most characters in a line of prose. Tables, code and link definitions cannot be broken, and may be longer. */
export const longestLine = 120;

/** Everything that is not plain, one line each: `file:line says “…”: write …`, or `file:line has 130 characters`. */
export function findOddEnglish(tree: SourceTree, globs: readonly string[] = guarded): readonly string[] {
  const problems: string[] = [];
  for (const [file, text] of tree) {
    if (!globs.some((glob) => path.posix.matchesGlob(file, glob))) continue;
    for (const passage of readPassages(file, text)) problems.push(...findDialect(file, passage));
    if (file.endsWith(".md")) problems.push(...findLongLines(file, text));
  }
  return problems;
}

function readPassages(file: string, text: string): readonly Passage[] {
  if (file.endsWith(".lua")) return [{ line: 1, text: readLuaComments(text) }];
  return isTypeScript(file) ? readModule(text, file) : [{ line: 1, text: readProse(text) }];
}

interface Passage {
  readonly line: number;
  readonly text: string;
}

/** The same; a phrase may continue in the next line. */
const anywhere = dialect.map(
  ([phrase, instead]) => [new RegExp(phrase.source.replaceAll(" ", "\\s+"), "gi"), instead] as const,
);
/** Most passages have none of them, which one look shows. */
const any = new RegExp(anywhere.map(([phrase]) => phrase.source).join("|"), "i");

function findDialect(file: string, passage: Passage): readonly string[] {
  const problems: string[] = [];
  if (!any.test(passage.text)) return problems;
  for (const [phrase, instead] of anywhere) {
    for (const { 0: found, index } of passage.text.matchAll(phrase)) {
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
  return withoutCode(withoutFences(text));
}

function withoutCode(text: string): string {
  return text.replaceAll(/(`+)[^`]+?\1/g, blank);
}

function withoutFences(text: string): string {
  return text.replaceAll(/^([ \t]*)(`{3,}|~{3,})[^\n]*\n[\s\S]*?^[ \t]*\2[^\n]*$/gm, blank);
}

function blank(text: string): string {
  return text.replaceAll(/[^\n]/g, " ");
}

/** The strings of a module, and its comments. */
function readModule(text: string, file: string): readonly Passage[] {
  const passages: Passage[] = [];
  const literals: SyntaxNode[] = [];
  walk(parseModule(text, file), (node) => {
    if (["Literal", "TemplateElement", "JSXText"].includes(node.type)) literals.push(node);
    const literal = findLiteral(node);
    if (literal !== undefined) passages.push({ line: findLine(text, node), text: literal });
  });
  return [...passages, { line: 1, text: readComments(text, literals) }];
}

/** A module without its code, in as many lines. Inside of a literal nothing is a comment. */
function readComments(text: string, literals: readonly SyntaxNode[]): string {
  let bare = "";
  for (const { start, end } of literals.toSorted((one, other) => one.start - other.start))
    bare += text.slice(bare.length, start) + cover(text.slice(start, end as number));
  bare += text.slice(bare.length);
  let comments = "";
  for (const { 0: comment, index } of bare.matchAll(/\/\*[\s\S]*?\*\/|\/\/[^\n]*/g))
    comments += cover(bare.slice(comments.length, index)) + comment.replaceAll(/^\s*\*+|\/\*+|\*+\/|\/\//gm, blank);
  return withoutCode(comments);
}

function readLuaComments(text: string): string {
  return withoutCode(
    text.replaceAll(/^.*$/gm, (line) => (/^\s*--/.test(line) ? line.replaceAll("--", "  ") : cover(line))),
  );
}

/** Code in place of which no phrase can stand, nor one from before it go on. */
function cover(text: string): string {
  return text.replaceAll(/\S/g, "·");
}

/** The text of a string or in an element, in the lines of its source: an escape is neither a letter nor a line. */
function findLiteral(node: SyntaxNode): string | undefined {
  if (node.type === "JSXText") return findProse(String(node.value));
  if (node.type === "Literal" && typeof node.value === "string") return findProse(withoutEscapes(String(node.raw)));
  if (node.type !== "TemplateLiteral" || !Array.isArray(node.quasis)) return undefined;
  // A substitution may be any word.
  return findProse(node.quasis.map((quasi) => (isNode(quasi) ? withoutEscapes(findRaw(quasi)) : "")).join("…"));
}

/** A single word is data. */
function findProse(text: string): string | undefined {
  return /\S\s+\S/.test(text) ? text : undefined;
}

function findRaw(quasi: SyntaxNode): string {
  return (quasi.value as { readonly raw: string }).raw;
}

function withoutEscapes(raw: string): string {
  return raw.replaceAll(/\\./g, "  ");
}
