import { spawnSync } from "node:child_process";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import path from "node:path";

/**
 * What git prints, without the last line break. Undefined if it fails, as outside a repository.
 *
 * @param {string} root
 * @param {...string} args
 * @returns {string | undefined}
 */
export function git(root, ...args) {
  const { status, stdout } = spawnSync("git", args, { cwd: root, encoding: "utf8", maxBuffer: 64 * 1024 * 1024 });
  return status === 0 ? stdout.trimEnd() : undefined;
}

/**
 * The commit that the files are those of. Undefined while they differ from it, and outside a repository.
 *
 * @param {string} root
 */
export function cleanCommit(root) {
  return git(root, "status", "--porcelain") === "" ? git(root, "rev-parse", "HEAD") : undefined;
}

/**
 * Every file that git knows, with its text.
 *
 * @param {string} root
 * @returns {ReadonlyMap<string, string>}
 */
export function readTrackedFiles(root) {
  const files = git(root, "ls-files", "-z")?.split("\0").filter(Boolean) ?? [];
  return new Map(files.map((file) => [file, readFileSync(path.join(root, file), "utf8")]));
}

/**
 * Remembers that all tests passed on a commit.
 *
 * @param {string} root
 * @param {string} commit
 */
export function recordTestedCommit(root, commit) {
  mkdirSync(path.dirname(testedCommitFile(root)), { recursive: true });
  writeFileSync(testedCommitFile(root), `${commit}\n`);
}

/**
 * The commit on which all tests passed last.
 *
 * @param {string} root
 * @returns {string | undefined}
 */
export function readTestedCommit(root) {
  try {
    return readFileSync(testedCommitFile(root), "utf8").trim();
  } catch {
    return undefined;
  }
}

/** @param {string} root */
function testedCommitFile(root) {
  return path.join(root, ".sluice", "tested-commit");
}
