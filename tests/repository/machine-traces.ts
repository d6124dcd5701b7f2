import type { SourceTree } from "./source-tree.ts";

/** Folders that hold personal or machine-specific files. */
const privatePath = /(?<![\w.})-])(?:\/(?:home|root|work|workspace)\/[\w.-]+|\/Users\/[\w.-]+|[A-Z]:\\Users\\)/;

/** Lines that name a folder or a package registry of the machine they were written on. */
export function findMachineTraces(tree: SourceTree, own: readonly string[]): readonly string[] {
  const problems: string[] = [];
  for (const [file, text] of tree) {
    if (file === "package-lock.json") continue;
    for (const [index, line] of text.split("\n").entries()) {
      const found = privatePath.exec(line)?.[0] ?? own.find((trace) => line.includes(trace));
      if (found !== undefined) problems.push(`${file}:${index + 1} names ${found}`);
    }
  }
  return problems;
}

/** The part of a registry's address that would give it away: `//host:port`. */
export function registryTrace(address: string): string {
  return `//${new URL(address).host}`;
}
