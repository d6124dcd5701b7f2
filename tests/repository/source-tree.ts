import { readdirSync, readFileSync } from "node:fs";
import path from "node:path";
import { fileURLToPath } from "node:url";

/** Text by path from the root, with forward slashes. Guards are functions of it, so a test can pass a bad tree. */
export type SourceTree = ReadonlyMap<string, string>;

export const repositoryRoot: string = fileURLToPath(new URL("../..", import.meta.url));

/** `.git` is a file in a worktree. */
const ignored = new Set(["node_modules", ".git", "dist", "coverage", ".sluice"]);

/** Every file that is, or is about to be, committed. Pictures and other binary files have an empty text. */
export function readSourceTree(root: string = repositoryRoot): SourceTree {
  const tree = new Map<string, string>();
  const visit = (folder: string): void => {
    for (const entry of readdirSync(path.join(root, folder), { withFileTypes: true })) {
      const file = folder === "" ? entry.name : `${folder}/${entry.name}`;
      if (ignored.has(entry.name)) continue;
      if (entry.isDirectory()) visit(file);
      else if (entry.isFile() && !file.endsWith(".tsbuildinfo")) {
        const text = readFileSync(path.join(root, file), "utf8");
        tree.set(file, text.includes("\0") ? "" : text);
      }
    }
  };
  visit("");
  return tree;
}

export function isTypeScript(file: string): boolean {
  return /\.([cm]?ts|tsx)$/.test(file);
}

export function isTest(file: string): boolean {
  return /\.test\.tsx?$/.test(file);
}
