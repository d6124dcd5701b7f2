import { findImports, resolveRelative } from "./module-syntax.ts";
import { isTest, isTypeScript, type SourceTree } from "./source-tree.ts";

/**
 * Folders that need each other, in any package, each reported once. Within every folder the files and folders next to
 * each other are compared: an import from anywhere in one to anywhere in the other is an arrow between the two, and
 * arrows may not form a circle that a folder is part of. Type-only imports count too. Tests and their shared code may
 * import anything.
 *
 *     http/ → grpc/handlers/     an arrow from http/ to grpc/, in the folder that holds both
 */
export function findFolderCycles(tree: SourceTree): readonly string[] {
  const arrowsByFolder = new Map<string, Map<string, Set<string>>>();
  for (const [file, text] of tree) {
    if (!/^packages\/[^/]+\/src\//.test(file) || !isTypeScript(file) || isTest(file) || isTestTool(file)) continue;
    for (const { specifier } of findImports(text, file)) {
      if (specifier.startsWith(".")) addArrow(arrowsByFolder, file, resolveRelative(file, specifier));
    }
  }
  const problems: string[] = [];
  for (const [folder, arrows] of arrowsByFolder) {
    for (const circle of findCircles(arrows)) {
      if (circle.some((one) => !isTypeScript(one))) problems.push(`${folder}: ${circle.join(", ")} need each other`);
    }
  }
  return problems.sort();
}

function isTestTool(file: string): boolean {
  return file.includes("/testing/");
}

function addArrow(to: Map<string, Map<string, Set<string>>>, file: string, imported: string): void {
  const from = file.split("/");
  const target = imported.split("/");
  let shared = 0;
  while (from[shared] === target[shared] && shared < from.length - 1) shared += 1;
  const [one, other] = [from[shared], target[shared]];
  if (one === undefined || other === undefined || one === other) return;
  const folder = from.slice(0, shared).join("/");
  const arrows = to.get(folder) ?? new Map<string, Set<string>>();
  to.set(folder, arrows.set(one, (arrows.get(one) ?? new Set()).add(other)));
}

/** Everything that reaches itself again, in groups that reach one another (Tarjan's strongly connected components). */
function findCircles(arrows: ReadonlyMap<string, ReadonlySet<string>>): readonly (readonly string[])[] {
  const circles: string[][] = [];
  const order = new Map<string, number>();
  const lowest = new Map<string, number>();
  const stack: string[] = [];
  const visit = (name: string): void => {
    order.set(name, order.size);
    lowest.set(name, order.get(name)!);
    stack.push(name);
    for (const next of arrows.get(name) ?? []) {
      if (!order.has(next)) visit(next);
      if (stack.includes(next)) lowest.set(name, Math.min(lowest.get(name)!, lowest.get(next)!));
    }
    if (lowest.get(name) !== order.get(name)) return;
    const circle = stack.splice(stack.indexOf(name));
    if (circle.length > 1) circles.push(circle.sort());
  };
  for (const name of arrows.keys()) if (!order.has(name)) visit(name);
  return circles;
}
