import { parseAst } from "vitest/node";

/** A node of the syntax tree, as far as guards need it. */
export interface SyntaxNode {
  readonly type: string;
  readonly start: number;
  readonly [field: string]: unknown;
}

/** An import of another module, by any syntax: import, export from, `import()`, or an `import("…")` type. */
export interface ModuleImport {
  readonly specifier: string;
  readonly line: number;
  /** Whether nothing is imported before that line runs: `import()`, or a type of it. */
  readonly isLoaded: boolean;
}

/** `file` decides whether `<a>` begins an element or a type. */
export function parseModule(text: string, file = "module.ts"): SyntaxNode {
  return parseAst(text, { lang: file.endsWith("x") ? "tsx" : "ts" }) as unknown as SyntaxNode;
}

/** Calls `visit` for the node and all below it, with its parent. */
export function walk(
  node: SyntaxNode,
  visit: (node: SyntaxNode, parent: SyntaxNode | undefined) => void,
  parent?: SyntaxNode,
): void {
  visit(node, parent);
  for (const value of Object.values(node)) {
    for (const child of Array.isArray(value) ? value : [value]) {
      if (isNode(child)) walk(child, visit, node);
    }
  }
}

export function isNode(value: unknown): value is SyntaxNode {
  return typeof value === "object" && value !== null && "type" in value && typeof value.type === "string";
}

export function findLine(text: string, node: SyntaxNode): number {
  return text.slice(0, node.start).split("\n").length;
}

const importing = new Set([
  "ImportDeclaration",
  "ExportNamedDeclaration",
  "ExportAllDeclaration",
  "ImportExpression",
  "TSImportType",
]);

/** By text: several guards look at the imports of every module. */
const known = new Map<string, readonly ModuleImport[]>();

/** A module's name, as a string or, in built code, as a template without expressions. */
function findSpecifier(source: unknown): string | undefined {
  if (!isNode(source)) return undefined;
  if (typeof source.value === "string") return source.value;
  const { quasis } = source;
  if (source.type !== "TemplateLiteral" || !Array.isArray(quasis) || quasis.length !== 1) return undefined;
  const text: unknown = quasis[0].value.cooked;
  return typeof text === "string" ? text : undefined;
}

export function findImports(text: string, file?: string): readonly ModuleImport[] {
  const before = known.get(text);
  if (before !== undefined) return before;
  const found: ModuleImport[] = [];
  walk(parseModule(text, file), (node) => {
    const specifier = importing.has(node.type) ? findSpecifier(node.source) : undefined;
    if (specifier === undefined) return;
    const isLoaded = node.type === "ImportExpression" || node.type === "TSImportType";
    found.push({ specifier, line: findLine(text, node), isLoaded });
  });
  known.set(text, found);
  return found;
}

/** The path that a relative import leads to, from the root. */
export function resolveRelative(file: string, specifier: string): string {
  const steps = file.split("/").slice(0, -1);
  for (const step of specifier.split("/")) {
    if (step === "..") steps.pop();
    else if (step !== ".") steps.push(step);
  }
  return steps.join("/");
}
