import { findImports, resolveRelative } from "./module-syntax.ts";
import { isTypeScript, type SourceTree } from "./source-tree.ts";

/**
 * Import cycles, each reported once as the files along it. Type-only imports count too: two files that need each
 * other's types are one idea in two places, or lack a third file that both could import.
 */
export function findImportCycles(tree: SourceTree): readonly string[] {
  const cycles: string[] = [];
  const finished = new Set<string>();
  const trail: string[] = [];

  const visit = (file: string): void => {
    const seenAt = trail.indexOf(file);
    if (seenAt >= 0) {
      cycles.push([...trail.slice(seenAt), file].join(" → "));
      return;
    }
    const text = tree.get(file);
    if (text === undefined || finished.has(file) || !isTypeScript(file)) return;
    trail.push(file);
    for (const { specifier } of findImports(text, file)) {
      if (specifier.startsWith(".")) visit(resolveRelative(file, specifier));
    }
    trail.pop();
    finished.add(file);
  };

  for (const file of tree.keys()) {
    if (isTypeScript(file)) visit(file);
  }
  return cycles;
}
