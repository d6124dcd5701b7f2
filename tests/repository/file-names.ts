/** Words that say nothing about the content. */
const emptyWords = new Set(["util", "utils", "helper", "helpers", "common", "misc", "manager", "impl"]);

/** Paths with a word that says nothing, and sources that are not in kebab-case. */
export function findPoorNames(files: Iterable<string>): readonly string[] {
  const problems: string[] = [];
  for (const file of files) {
    // Paths of other projects' protocols, and their generated code.
    if (/^packages\/protocol\/(proto|src\/generated)\//.test(file)) continue;
    const words = file
      .replaceAll(/([a-z])([A-Z])/g, "$1-$2")
      .toLowerCase()
      .split(/[/._-]/);
    const empty = words.find((word) => emptyWords.has(word));
    if (empty !== undefined) problems.push(`${file}: "${empty}" does not say what is inside`);
    const name = file.split("/").at(-1) ?? "";
    if (/\.m?tsx?$|\.mjs$/.test(name) && !/^[a-z0-9]+(-[a-z0-9]+)*(\.[a-z]+)+$/.test(name)) {
      problems.push(`${file}: sources are named in kebab-case`);
    }
  }
  return problems;
}
