import { createHash } from "node:crypto";

/**
 * The version stands in package.json at the root. Manifests, the lock file, the chart, what helm made of it, and pages repeat it:
 * this module finds and rewrites those places.
 *
 * @typedef {ReadonlyMap<string, string>} SourceTree text by path from the root
 *
 * @typedef {object} Manifest
 * @property {string} [name]
 * @property {string} [version]
 * @property {Record<string, string>} [dependencies]
 * @property {Record<string, string>} [devDependencies]
 * @property {Record<string, string>} [optionalDependencies]
 * @property {Record<string, string>} [peerDependencies]
 */

/** A version as npm, helm and git tags all take it: `1.0.0`, `1.0.0-rc.1`. */
export const versionPattern = /^(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)(-(alpha|beta|rc)\.(0|[1-9]\d*))?$/;

const anyVersion = String.raw`\d+\.\d+\.\d+(?:-[a-z]+\.\d+)?`;

/**
 * Text that repeats the version, as a pattern with the version between two groups.
 *
 * @type {readonly { files: RegExp, pattern: string }[]}
 */
const repeated = [
  {
    files: /^deploy\/helm\/sluice\/Chart\.yaml$/,
    pattern: `(^(?:version|appVersion): "?)${anyVersion}("?$)`,
  },
  {
    files: /^tests\/deploy\/charts\/[^/]+\.rendered\.yaml$/,
    pattern: String.raw`(^ *(?:app\.kubernetes\.io\/version: "|helm\.sh\/chart: sluice-|- ?image: "sluice:|image: "sluice:))${anyVersion}("?$)`,
  },
  { files: /^(README\.md|docs\/[^/]+\.md)$/, pattern: String.raw`(\bSluice )${anyVersion}( listens|, Node)` },
  { files: /^(README\.md|docs\/[^/]+\.md)$/, pattern: String.raw`(\bsluice(?:-[a-z]+)?-)${anyVersion}(\.tgz)` },
  { files: /^docs\/(operations|http)\.md$/, pattern: `(^  "version": ")${anyVersion}(",?$)` },
];

/** @param {SourceTree} tree */
export function readVersion(tree) {
  return String(parse(tree, "package.json").version);
}

/**
 * Every place that disagrees with package.json at the root, one line each.
 *
 * @param {SourceTree} tree
 * @returns {readonly string[]}
 */
export function findVersionProblems(tree) {
  const version = readVersion(tree);
  if (!versionPattern.test(version)) return [`package.json: "${version}" is not a version such as 1.0.0 or 1.0.0-rc.1`];
  const wanted = renderVersion(tree, version);
  return [...wanted].map(([file, text]) => `${file}: ${describeDifference(tree.get(file) ?? "", text)}`);
}

/**
 * The files that change when the version becomes `version`, with their new text.
 *
 * @param {SourceTree} tree
 * @param {string} version
 * @returns {ReadonlyMap<string, string>}
 */
export function renderVersion(tree, version) {
  /** @type {Map<string, string>} */
  const changed = new Map();
  const own = findOwnNames(tree);
  for (const [file, text] of tree) {
    const next = renderFile(file, text, version, own);
    if (next !== text) changed.set(file, next);
  }
  const digest = digestRendered(tree, changed);
  if (digest !== undefined && digest.text !== tree.get(digest.file)) changed.set(digest.file, digest.text);
  return changed;
}

/**
 * @param {string} file
 * @param {string} text
 * @param {string} version
 * @param {ReadonlySet<string>} own
 */
function renderFile(file, text, version, own) {
  if (isManifest(file)) {
    const manifest = JSON.parse(text);
    const isRoot = file === "package.json";
    if (isRoot || own.has(manifest.name)) return replaceIn(text, manifest, setVersions(manifest, version, own));
    return text;
  }
  if (file === "package-lock.json") {
    const lock = JSON.parse(text);
    const packages = Object.fromEntries(
      Object.entries(lock.packages).map(([place, one]) => [
        place,
        place.includes("node_modules/") ? one : setVersions(one, version, own, place === ""),
      ]),
    );
    return replaceIn(text, lock, { ...lock, version, packages });
  }
  return repeated
    .filter(({ files }) => files.test(file))
    .reduce((left, { pattern }) => left.replaceAll(new RegExp(pattern, "gm"), `$1${version}$2`), text);
}

/**
 * @param {Manifest} manifest
 * @param {string} version
 * @param {ReadonlySet<string>} own
 * @param {boolean} [isRoot]
 * @returns {Manifest}
 */
function setVersions(manifest, version, own, isRoot = false) {
  const next = { ...manifest };
  if (isRoot || manifest.version !== undefined) next.version = version;
  for (const field of /** @type {const} */ ([
    "dependencies",
    "devDependencies",
    "optionalDependencies",
    "peerDependencies",
  ])) {
    const entries = Object.entries(manifest[field] ?? {});
    if (entries.length === 0) continue;
    next[field] = Object.fromEntries(
      entries.map(([name, range]) => [name, own.has(name) ? range.replace(new RegExp(anyVersion), version) : range]),
    );
  }
  return next;
}

/**
 * The digest that is recorded with the rendered chart: its version changes what helm prints, and only there.
 *
 * @param {SourceTree} tree
 * @param {ReadonlyMap<string, string>} changed
 */
function digestRendered(tree, changed) {
  const file = "tests/deploy/charts/digest";
  const chart = "deploy/helm/sluice/Chart.yaml";
  if (!tree.has(file) || !changed.has(chart)) return undefined;
  return { file, text: `${digestChartFiles(new Map([...tree, ...changed]))}\n` };
}

/**
 * The digest of `scripts/chart-digest.mjs`, of files in memory.
 *
 * @param {SourceTree} tree
 */
export function digestChartFiles(tree) {
  const hash = createHash("sha256");
  const files = [...tree.keys()].filter(
    (file) =>
      (file.startsWith("deploy/helm/sluice/") && !file.endsWith("/alerts.yaml")) ||
      /^tests\/deploy\/charts\/([^/]+\.values\.yaml|refused\.json)$/.test(file),
  );
  for (const file of files.toSorted()) hash.update(`${file}\0`).update(String(tree.get(file)));
  return hash.digest("hex");
}

/** @param {SourceTree} tree */
function findOwnNames(tree) {
  const workspaces = [...tree.keys()].filter((file) =>
    /^(packages|tests)\/.*package\.json$|^bench\/package\.json$/.test(file),
  );
  const names = workspaces.map((file) => parse(tree, file).name).filter((name) => name !== undefined);
  return new Set(names.filter((name) => name === "sluice" || name.startsWith("@sluice/")));
}

/** @param {string} file */
function isManifest(file) {
  return /(^|\/)package\.json$/.test(file);
}

/**
 * The text with another value in the same layout.
 *
 * @param {string} text
 * @param {unknown} before
 * @param {unknown} after
 */
function replaceIn(text, before, after) {
  return JSON.stringify(before) === JSON.stringify(after) ? text : `${JSON.stringify(after, null, 2)}\n`;
}

/**
 * @param {string} before
 * @param {string} after
 */
function describeDifference(before, after) {
  const [old, next] = [before.split("\n"), after.split("\n")];
  const line = old.findIndex((one, index) => one !== next[index]);
  return `line ${line + 1} says \`${old[line]?.trim()}\`, but should say \`${next[line]?.trim()}\``;
}

/**
 * @param {SourceTree} tree
 * @param {string} file
 * @returns {Manifest}
 */
function parse(tree, file) {
  const text = tree.get(file);
  if (text === undefined) throw new Error(`${file} is missing`);
  return JSON.parse(text);
}
