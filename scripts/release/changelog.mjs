/** A heading of a release: `## 1.0.0 (2026-11-19)`. */
const heading = /^## (\S+)(?: \((\d{4}-\d{2}-\d{2})\))?$/;

/**
 * What the changelog says about a version, without its heading. Undefined if there is no such section.
 *
 * @param {string} changelog
 * @param {string} version or `Unreleased`
 * @returns {{ date: string | undefined, text: string } | undefined}
 */
export function findSection(changelog, version) {
  const lines = changelog.split("\n");
  const start = lines.findIndex((line) => heading.exec(line)?.[1] === version);
  if (start === -1) return undefined;
  const length = lines.slice(start + 1).findIndex((line) => line.startsWith("## "));
  const body = lines.slice(start + 1, length === -1 ? undefined : start + 1 + length);
  return { date: heading.exec(lines[start] ?? "")?.[2], text: body.join("\n").trim() };
}

/**
 * The changelog in which what was unreleased is the section of a version, below an empty section for what comes next.
 *
 * @param {string} changelog
 * @param {string} version
 * @param {string} date `2026-11-19`
 * @returns {string}
 */
export function nameUnreleased(changelog, version, date) {
  if (findSection(changelog, version) !== undefined) throw new Error(`CHANGELOG.md has a section ${version} already`);
  if (!findSection(changelog, "Unreleased")?.text) {
    throw new Error('CHANGELOG.md has nothing under "## Unreleased" that could become the section of this version');
  }
  return changelog.replace(/^## Unreleased$/m, `## Unreleased\n\n## ${version} (${date})`);
}
