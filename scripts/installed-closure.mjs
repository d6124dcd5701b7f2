import { readFileSync } from "node:fs";
import path from "node:path";
import { repositoryRoot } from "./ensure-installed.mjs";

/**
 * @typedef {object} InstalledPackage
 * @property {string} name
 * @property {string} version
 * @property {string} place its folder from the root: `node_modules/pg`, or `packages/core` for one of ours
 * @property {boolean} own whether it is one of ours
 * @property {string | undefined} licence
 * @property {string | undefined} integrity `sha512-…` in base64
 *
 * @typedef {{ name?: string, version: string, license?: string, integrity?: string, link?: true, resolved?: string,
 *   dependencies?: Record<string, string> }} LockedPackage
 */

/** Types describe packages to a compiler; nothing that runs loads them. */
const isForCompilers = (/** @type {string} */ name) => name.startsWith("@types/") || name === "undici-types";

/**
 * Packages of ours with everything they need to run, at the versions of the lock file. Without optional peers.
 *
 * @param {readonly string[]} starts folders of our packages: `packages/cli`
 * @returns {readonly InstalledPackage[]} ordered by place
 */
export function installedClosure(starts) {
  /** @type {{ packages: Record<string, LockedPackage> }} */
  const { packages } = JSON.parse(readFileSync(path.join(repositoryRoot, "package-lock.json"), "utf8"));
  /** @type {Map<string, InstalledPackage>} */
  const found = new Map();
  const visit = (/** @type {string} */ given) => {
    const place = packages[given]?.link === true ? String(packages[given].resolved) : given;
    const locked = packages[place];
    if (locked === undefined || found.has(place)) return;
    const name = locked.name ?? place.slice(place.lastIndexOf("node_modules/") + "node_modules/".length);
    if (isForCompilers(name)) return;
    const own = !place.includes("node_modules/");
    found.set(place, {
      name,
      version: locked.version,
      place,
      own,
      licence: locked.license,
      integrity: locked.integrity,
    });
    for (const dependency of Object.keys(locked.dependencies ?? {})) {
      const next = resolvePlace(packages, place, dependency);
      if (next === undefined) throw new Error(`${name} needs ${dependency}, which package-lock.json does not have`);
      visit(next);
    }
  };
  for (const start of starts) visit(start);
  return [...found.values()].toSorted((one, other) => (one.place < other.place ? -1 : 1));
}

/**
 * Where a package finds another, as Node looks for it: next to itself, then further up.
 *
 * @param {Record<string, LockedPackage>} packages
 * @param {string} from
 * @param {string} name
 */
function resolvePlace(packages, from, name) {
  for (let folder = from; folder !== ""; folder = parentPlace(folder)) {
    const place = `${folder}/node_modules/${name}`;
    if (packages[place] !== undefined) return place;
  }
  return packages[`node_modules/${name}`] === undefined ? undefined : `node_modules/${name}`;
}

/** The package that another is installed below, or the root. @param {string} place */
function parentPlace(place) {
  return place.slice(0, Math.max(0, place.lastIndexOf("/node_modules/")));
}
