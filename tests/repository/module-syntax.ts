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

export function parseModule(text: string): SyntaxNode {
  return parseAst(text, { lang: "ts" }) as unknown as SyntaxNode;
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

export function lineOf(text: string, node: SyntaxNode): number {
  return text.slice(0, node.start).split("\n").length;
}

const importing = new Set([
  "ImportDeclaration",
  "ExportNamedDeclaration",
  "ExportAllDeclaration",
  "ImportExpression",
  "TSImportType",
]);

export function findImports(text: string): readonly ModuleImport[] {
  const found: ModuleImport[] = [];
  walk(parseModule(text), (node) => {
    if (!importing.has(node.type) || !isNode(node.source) || typeof node.source.value !== "string") return;
    const isLoaded = node.type === "ImportExpression" || node.type === "TSImportType";
    found.push({ specifier: node.source.value, line: lineOf(text, node), isLoaded });
  });
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
