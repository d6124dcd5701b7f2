import { readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import { nameUnreleased } from "./changelog.mjs";
import { readTrackedFiles } from "./git.mjs";
import { renderVersion, versionPattern } from "./versions.mjs";

/**
 * Writes the version wherever it stands, and names the changelog's unreleased section after it.
 *
 * @param {string} root
 * @param {string} version
 * @param {string} date `2026-11-19`
 * @returns {readonly string[]} the files that changed
 */
export function prepareRelease(root, version, date) {
  if (!versionPattern.test(version)) throw new Error(`"${version}" is not a version such as 1.0.0 or 1.0.0-rc.1`);
  const changelog = path.join(root, "CHANGELOG.md");
  const named = nameUnreleased(readFileSync(changelog, "utf8"), version, date);
  const changed = new Map([...renderVersion(readTrackedFiles(root), version), ["CHANGELOG.md", named]]);
  for (const [file, text] of changed) writeFileSync(path.join(root, file), text);
  return [...changed.keys()].toSorted();
}
