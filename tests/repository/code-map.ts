import { isTest, isTypeScript, type SourceTree } from "./source-tree.ts";

const page = "ARCHITECTURE.md";

/**
 * Where the map in ARCHITECTURE.md and the tree differ: folders of a package that are not on it, two levels deep, and names on
 * it that no file or folder has. Only names with a hyphen or a slash are looked for, because a word may be anything.
 */
export function findMapErrors(tree: SourceTree): readonly string[] {
  const map = tree.get(page) ?? "";
  const problems: string[] = [];
  for (const folder of findFolders(tree)) {
    const [, name = "", , ...place] = folder.split("/");
    if (!findNames(findSection(map, name)).has(place.at(-1)!)) problems.push(`${page} does not show ${folder}`);
  }
  const known = findKnownNames(tree);
  for (const name of findNames(map)) {
    if (/^[a-z0-9]+(-[a-z0-9]+)+$/.test(name) && !known.has(name))
      problems.push(`${page} shows ${name}, which is gone`);
  }
  return problems;
}

/** Folders with code, down to the second level of a package's `src`. */
function findFolders(tree: SourceTree): ReadonlySet<string> {
  const folders = new Set<string>();
  for (const file of tree.keys()) {
    const steps = file.split("/");
    if (!/^packages\/[^/]+\/src\//.test(file) || !isTypeScript(file) || isTest(file)) continue;
    if (/\/(testing|generated|views)\//.test(file)) continue;
    for (const depth of [4, 5]) if (steps.length > depth) folders.add(steps.slice(0, depth).join("/"));
  }
  return folders;
}

function findSection(map: string, name: string): string {
  const sections = map.split(/^## /m);
  return sections.find((section) => new RegExp(`^Code map: \`packages/${name}[/\`]`).test(section)) ?? "";
}

/** Every step of every path between backticks, without the ends of file names. */
function findNames(map: string): ReadonlySet<string> {
  const names = new Set<string>();
  for (const { 1: path = "" } of map.replaceAll(/^```[\s\S]*?^```/gm, "").matchAll(/`([^`\n]+)`/g)) {
    for (const step of path.split(/[/{},]/)) names.add(withoutEnd(step));
  }
  return names;
}

function findKnownNames(tree: SourceTree): ReadonlySet<string> {
  return new Set([...tree.keys()].flatMap((file) => file.split("/").map(withoutEnd)));
}

function withoutEnd(name: string): string {
  return name.replace(/(\.test|\.generated)?\.[a-z]+$/, "");
}
