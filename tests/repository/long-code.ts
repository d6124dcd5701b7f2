import { isNode, parseModule, type SyntaxNode, walk } from "./module-syntax.ts";
import { isTest, isTypeScript, type SourceTree } from "./source-tree.ts";

/** The most lines of a file, and of a function. Components get more, because markup has an attribute to a line. */
export const longest = { file: 450, function: 100, component: 150 } as const;

/**
 * Files and functions of packages that are too long, each reported once. One whose file begins with “Long because …” says why it
 * cannot be shorter. Tests and generated code may be as long as they are.
 */
export function findLongCode(tree: SourceTree): readonly string[] {
  const problems: string[] = [];
  for (const [file, text] of tree) {
    if (!/^packages\/[^/]+\/src\//.test(file) || !isTypeScript(file) || isTest(file) || isGenerated(file)) continue;
    const lines = countLines(text.trimEnd());
    if (lines <= longest.function || /^\/[/*]+ Long because /.test(text)) continue;
    if (lines > longest.file) problems.push(`${file} has ${lines} lines: at most ${longest.file}`);
    problems.push(...findLongFunctions(file, text));
  }
  return problems;
}

function isGenerated(file: string): boolean {
  return file.includes("/generated/") || file.includes(".generated.");
}

function findLongFunctions(file: string, text: string): readonly string[] {
  const problems: string[] = [];
  const most = file.endsWith(".tsx") ? longest.component : longest.function;
  walk(parseModule(text, file), (node, parent) => {
    if (!functions.has(node.type)) return;
    const lines = countLines(text.slice(node.start, node.end as number));
    if (lines <= most) return;
    const start = countLines(text.slice(0, node.start));
    problems.push(`${file}:${start} ${findName(node, parent)} has ${lines} lines: at most ${most}`);
  });
  return problems;
}

const functions = new Set(["FunctionDeclaration", "FunctionExpression", "ArrowFunctionExpression"]);

function findName(node: SyntaxNode, parent: SyntaxNode | undefined): string {
  for (const name of [node.id, parent?.key, parent?.id]) if (isNode(name)) return String(name.name);
  return "a function";
}

function countLines(text: string): number {
  return text.split("\n").length;
}
