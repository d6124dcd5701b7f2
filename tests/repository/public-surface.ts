import { isNode, parseModule, resolveRelative, type SyntaxNode } from "./module-syntax.ts";
import { readSourceTree, type SourceTree } from "./source-tree.ts";

/** A module that users import by name: its exports are a promise. */
interface Entry {
  readonly name: string;
  readonly file: string;
}

/** Every subpath that a package exports, in the order of its manifest. */
export function findEntries(tree: SourceTree): readonly Entry[] {
  const manifests = [...tree].filter(([file]) => /^packages\/[^/]+\/package\.json$/.test(file)).sort();
  return manifests.flatMap(([file, text]) => {
    const { name, exports = {} } = JSON.parse(text) as Manifest;
    return Object.entries(exports).flatMap(([subpath, target]) =>
      typeof target === "string" || target.source === undefined
        ? []
        : [{ name: name + subpath.slice(1), file: file.replace(/package\.json$/, target.source.slice(2)) }],
    );
  });
}

interface Manifest {
  readonly name: string;
  readonly exports?: Readonly<Record<string, string | { readonly source?: string }>>;
}

/** Shared by Sluice's own packages: exported, and not promised to applications. */
export const internalEntries: readonly string[] = [
  "sluice/internal",
  "@sluice/client/internal",
  "@sluice/server/command",
];

/** The exported names of every promised entry, one a line: the content of public-surface.txt. */
export function renderSurface(tree: SourceTree = readSourceTree()): string {
  const promised = findEntries(tree).filter(({ name }) => !internalEntries.includes(name));
  const sections = promised.map(({ name, file }) => `${[`# ${name}`, ...findExports(tree, file)].join("\n")}\n`);
  return sections.join("\n");
}

/** `value name` or `type name` for each export, sorted, followed through `export *`. */
export function findExports(tree: SourceTree, file: string): readonly string[] {
  const text = tree.get(file);
  if (text === undefined) throw new Error(`${file} is missing`);
  const found = new Set<string>();
  for (const node of parseModule(text).body as SyntaxNode[]) {
    for (const name of findStatementExports(tree, file, node)) found.add(name);
  }
  return [...found].sort();
}

function findStatementExports(tree: SourceTree, file: string, node: SyntaxNode): readonly string[] {
  if (node.type === "ExportDefaultDeclaration") return ["value default"];
  if (node.type === "ExportAllDeclaration") {
    if (isNode(node.exported)) return [`${node.exportKind} ${node.exported.name}`];
    const source = isNode(node.source) ? String(node.source.value) : "";
    if (!source.startsWith(".")) return [`all of ${source}`];
    const all = findExports(tree, resolveRelative(file, source));
    return node.exportKind === "type" ? all.map((line) => line.replace(/^value /, "type ")) : all;
  }
  if (node.type !== "ExportNamedDeclaration") return [];
  const names: string[] = [];
  for (const specifier of node.specifiers as SyntaxNode[]) {
    const kind = node.exportKind === "type" ? "type" : specifier.exportKind;
    if (isNode(specifier.exported)) names.push(`${kind} ${specifier.exported.name ?? specifier.exported.value}`);
  }
  if (isNode(node.declaration))
    names.push(...declaredNames(node.declaration).map((name) => `${node.exportKind} ${name}`));
  return names;
}

function declaredNames(declaration: SyntaxNode): readonly string[] {
  const declared = Array.isArray(declaration.declarations) ? declaration.declarations : [declaration];
  return declared.map((one) => (isNode(one) && isNode(one.id) ? String(one.id.name) : "?"));
}
