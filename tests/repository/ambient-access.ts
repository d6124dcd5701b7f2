import { findLine, isNode, parseModule, type SyntaxNode, walk } from "./module-syntax.ts";
import { isTest, isTypeScript, type SourceTree } from "./source-tree.ts";

const clockFile = "packages/core/src/clock.ts";
const mainFile = "packages/cli/src/main.ts";

/** Places in core, other than clock.ts, that read the time. */
export function findClockReads(tree: SourceTree): readonly string[] {
  return findAccess(tree, (file) => file.startsWith("packages/core/src/") && file !== clockFile, readsClock);
}

/** Places in packages, other than the main.ts of the command line, that read the environment. */
export function findEnvironmentReads(tree: SourceTree): readonly string[] {
  return findAccess(tree, (file) => /^packages\/[^/]+\/src\//.test(file) && file !== mainFile, readsEnvironment);
}

function findAccess(
  tree: SourceTree,
  guarded: (file: string) => boolean,
  offends: (node: SyntaxNode, parent: SyntaxNode | undefined) => boolean,
): readonly string[] {
  const problems: string[] = [];
  for (const [file, text] of tree) {
    if (!isTypeScript(file) || isTest(file) || !guarded(file)) continue;
    walk(parseModule(text, file), (node, parent) => {
      if (!offends(node, parent)) return;
      const line = findLine(text, node);
      problems.push(`${file}:${line} ${text.split("\n")[line - 1]?.trim()}`);
    });
  }
  return problems;
}

/**
 * `Date` may format a given time (`new Date(ms)`), parse one, or be a type. Every other use of it could read the clock,
 * and `performance` and `process.hrtime` have no other use.
 */
function readsClock(node: SyntaxNode, parent: SyntaxNode | undefined): boolean {
  if (node.type !== "Identifier" || isPropertyName(node, parent)) return false;
  if (node.name === "performance" || node.name === "hrtime") return true;
  if (node.name !== "Date" || parent === undefined || parent.type.startsWith("TS")) return false;
  if (parent.type === "NewExpression") return Array.isArray(parent.arguments) && parent.arguments.length === 0;
  if (parent.type === "BinaryExpression") return parent.operator !== "instanceof";
  return !(isMember(parent, "Date", "UTC") || isMember(parent, "Date", "parse"));
}

function readsEnvironment(node: SyntaxNode): boolean {
  if (isMember(node, "process", "env")) return true;
  if (node.type === "VariableDeclarator") return isNamed(node.init, "process") && picks(node.id, "env");
  if (node.type !== "ImportSpecifier" || !isNode(node.imported)) return false;
  return node.imported.name === "env";
}

/** `thing.name`, but not `name.thing` and not `{ [name]: … }`: a property called `performance` is not a clock. */
function isPropertyName(node: SyntaxNode, parent: SyntaxNode | undefined): boolean {
  if (parent === undefined || parent.computed === true) return false;
  if (parent.type === "MemberExpression")
    return parent.property === node && !isNamed(parent.object, "process") && !isNamed(parent.object, "globalThis");
  return parent.key === node && parent.shorthand !== true;
}

function isMember(node: SyntaxNode, object: string, property: string): boolean {
  if (node.type !== "MemberExpression" || !isNode(node.property)) return false;
  if (node.property.name !== property && node.property.value !== property) return false;
  return isNamed(node.object, object) || (isNode(node.object) && isMember(node.object, "globalThis", object));
}

function isNamed(node: unknown, name: string): boolean {
  return isNode(node) && node.type === "Identifier" && node.name === name;
}

function picks(pattern: unknown, name: string): boolean {
  if (!isNode(pattern) || !Array.isArray(pattern.properties)) return false;
  return pattern.properties.some((property) => isNode(property) && isNamed(property.key, name));
}
