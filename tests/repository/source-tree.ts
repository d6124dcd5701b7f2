import { readdirSync, readFileSync } from "node:fs";
import path from "node:path";
import { fileURLToPath } from "node:url";

/** Text by path from the root, with forward slashes. Guards are functions of it, so a bad tree is easy to hand them. */
export type SourceTree = ReadonlyMap<string, string>;

export const repositoryRoot: string = fileURLToPath(new URL("../..", import.meta.url));

const ignoredFolders = new Set(["node_modules", ".git", "dist", "coverage", ".sluice"]);

/** Every text file that is, or is about to be, checked in. */
export function readSourceTree(root: string = repositoryRoot): SourceTree {
  const tree = new Map<string, string>();
  const visit = (folder: string): void => {
    for (const entry of readdirSync(path.join(root, folder), { withFileTypes: true })) {
      const file = folder === "" ? entry.name : `${folder}/${entry.name}`;
      if (entry.isDirectory()) {
        if (!ignoredFolders.has(entry.name)) visit(file);
      } else if (entry.isFile() && !file.endsWith(".tsbuildinfo")) {
        const text = readFileSync(path.join(root, file), "utf8");
        if (!text.includes("\0")) tree.set(file, text);
      }
    }
  };
  visit("");
  return tree;
}

export function isTypeScript(file: string): boolean {
  return /\.[cm]?ts$/.test(file);
}

export function isTest(file: string): boolean {
  return file.endsWith(".test.ts");
}
