import { findSection } from "./changelog.mjs";
import { cleanCommit, git, readTestedCommit, readTrackedFiles } from "./git.mjs";
import { findSignerProblem } from "./sign.mjs";
import { findVersionProblems, readVersion } from "./versions.mjs";

/**
 * One thing that a release needs. `note` is worth reading although it does not stop the release.
 *
 * @typedef {{ name: string, kind: "right" | "note" | "wrong", detail: string }} Finding
 */

/**
 * Everything that a release needs from its repository, but for generated files and tests, which take longer.
 *
 * @param {string} root
 * @param {import("./sign.mjs").Signer | undefined} signer
 * @returns {readonly Finding[]}
 */
export function checkRelease(root, signer) {
  const tree = readTrackedFiles(root);
  const version = readVersion(tree);
  return [
    checkTree(root),
    checkBranch(root),
    checkVersions(tree, version),
    checkTag(root, version),
    checkChangelog(tree, version),
    checkSigner(root, signer),
  ];
}

/**
 * Whether the tests of this commit passed before.
 *
 * @param {string} root
 * @returns {Finding}
 */
export function checkTests(root) {
  const commit = cleanCommit(root);
  const isTested = commit !== undefined && readTestedCommit(root) === commit;
  return isTested
    ? finding("tests", "right", `npm test passed on ${commit.slice(0, 12)}`)
    : finding("tests", "note", "npm test has not passed on this commit in this clone, so it runs before packing");
}

/** @param {string} root */
function checkTree(root) {
  const status = git(root, "status", "--porcelain");
  if (status === undefined) return finding("tree", "wrong", "this is not a clone: git finds no repository");
  const changed = status.split("\n").filter(Boolean);
  if (changed.length === 0) return finding("tree", "right", "everything is committed");
  const named = changed.slice(0, 5).map((line) => line.slice(3));
  const more = changed.length > named.length ? `, and ${changed.length - named.length} more` : "";
  return finding("tree", "wrong", `commit or remove these changes first: ${named.join(", ")}${more}`);
}

/** @param {string} root */
function checkBranch(root) {
  const branch = git(root, "branch", "--show-current");
  if (branch === "main") return finding("branch", "right", "main");
  return finding("branch", "wrong", `releases are made from main, but this is ${branch || "no branch"}`);
}

/**
 * @param {import("./versions.mjs").SourceTree} tree
 * @param {string} version
 */
function checkVersions(tree, version) {
  const [first, ...more] = findVersionProblems(tree);
  if (first === undefined) return finding("versions", "right", `${version} everywhere`);
  const rest = more.length === 0 ? "" : ` (and ${more.length} more files)`;
  return finding("versions", "wrong", `${first}${rest}; npm run release -- --prepare ${version} writes them`);
}

/**
 * @param {string} root
 * @param {string} version
 */
function checkTag(root, version) {
  const commit = git(root, "rev-parse", "--verify", "--quiet", `v${version}^{commit}`);
  if (commit === undefined || commit === git(root, "rev-parse", "HEAD"))
    return finding("tag", "right", `v${version} is free`);
  return finding("tag", "wrong", `v${version} is another commit already; npm run release -- --prepare a later version`);
}

/**
 * @param {import("./versions.mjs").SourceTree} tree
 * @param {string} version
 */
function checkChangelog(tree, version) {
  const changelog = tree.get("CHANGELOG.md") ?? "";
  const section = findSection(changelog, version);
  const advice = `npm run release -- --prepare ${version} makes one from "Unreleased"`;
  if (section === undefined) return finding("changelog", "wrong", `there is no section ${version}; ${advice}`);
  if (section.date === undefined)
    return finding("changelog", "wrong", `the section ${version} has no date (YYYY-MM-DD)`);
  if (section.text === "") return finding("changelog", "wrong", `the section ${version} is empty`);
  if (findSection(changelog, "Unreleased")?.text) {
    return finding(
      "changelog",
      "wrong",
      `"Unreleased" is not empty: what is released belongs into the section ${version}`,
    );
  }
  return finding("changelog", "right", `the section ${version} of ${section.date}`);
}

/**
 * @param {string} root
 * @param {import("./sign.mjs").Signer | undefined} signer
 */
function checkSigner(root, signer) {
  if (signer === undefined) {
    const how = "configure git's user.signingkey, or name a key with --key or --gpg";
    return finding("signature", "note", `there is no signing key, so the release will not be signed; ${how}`);
  }
  const problem = findSignerProblem(root, signer);
  if (problem !== undefined) return finding("signature", "wrong", problem);
  return finding(
    "signature",
    "right",
    `by ${signer.kind === "ssh" ? "SSH" : "OpenPGP"} key ${signer.key.slice(0, 60)}`,
  );
}

/**
 * @param {string} name
 * @param {Finding["kind"]} kind
 * @param {string} detail
 * @returns {Finding}
 */
function finding(name, kind, detail) {
  return { name, kind, detail };
}
