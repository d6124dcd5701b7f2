import { spawn } from "node:child_process";
import {
  chmodSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { buildCommonJs, exportCommonJs, hasCommonJs } from "./build-cjs.mjs";
import { repositoryRoot } from "./ensure-installed.mjs";

/**
 * @typedef {object} Manifest
 * @property {string} name
 * @property {string} version
 * @property {boolean} [private]
 * @property {boolean} [sideEffects]
 * @property {{ node?: string }} [engines]
 * @property {Record<string, unknown>} [exports]
 * @property {Record<string, string>} [scripts]
 * @property {Record<string, string>} [dependencies]
 * @property {Record<string, string>} [devDependencies]
 * @property {Record<string, string>} [optionalDependencies]
 * @property {Record<string, string>} [peerDependencies]
 *
 * @typedef {{ folder: string, manifest: Manifest }} PublicPackage
 * @typedef {PublicPackage & { tarball: string }} PackedPackage `manifest` is the published one, `tarball` a path
 */

/** Top-level folders of a package that are not copied, because they are generated or installed again. */
const leftBehind = new Set(["dist", "node_modules"]);

/**
 * Every package that is published, by its folder from the root.
 *
 * @param {string} [root]
 * @returns {PublicPackage[]}
 */
export function findPublicPackages(root = repositoryRoot) {
  return readdirSync(path.join(root, "packages"))
    .map((name) => `packages/${name}`)
    .filter((folder) => existsSync(path.join(root, folder, "package.json")))
    .map((folder) => ({ folder, manifest: readManifest(path.join(root, folder)) }))
    .filter(({ manifest }) => manifest.private !== true);
}

/**
 * Builds and packs every public package into `folder`. Both happen in a copy: a build in place would keep files of deleted
 * modules, and the tree stays unchanged.
 *
 * @param {string} folder
 * @param {NodeJS.ProcessEnv} env in which `node` and `tsc` are the installed ones
 * @returns {Promise<PackedPackage[]>}
 */
export async function packPackages(folder, env) {
  const stage = mkdtempSync(path.join(tmpdir(), "sluice-pack-"));
  try {
    const packages = findPublicPackages();
    stagePackages(stage, packages);
    await run("tsc", ["-b", stage], stage, env);
    const own = packages.map(({ manifest }) => manifest.name);
    const published = packages.map((one) => ({ ...one, manifest: renderManifest(one.manifest, own) }));
    for (const { folder: from, manifest } of published) {
      if (hasCommonJs(manifest)) await buildCommonJs(path.join(stage, from), manifest);
      const exported = hasCommonJs(manifest) ? exportCommonJs(manifest) : manifest;
      writeJson(path.join(stage, from, "package.json"), exported);
    }
    for (const { folder: from } of packages) makeReadable(path.join(stage, from));
    mkdirSync(folder, { recursive: true });
    const places = packages.map(({ folder: from }) => `./${from}`);
    await run(
      "npm",
      ["pack", "--ignore-scripts", "--pack-destination", path.resolve(folder), ...places],
      stage,
      npmEnvironment(env),
    );
    return published.map((one) => ({ ...one, tarball: path.join(path.resolve(folder), tarballName(one.manifest)) }));
  } finally {
    rmSync(stage, { recursive: true, force: true });
  }
}

/**
 * The published manifest. The condition `source` leads to TypeScript, which Node does not run inside node_modules, and
 * which users with a condition of that name would get. Our packages accept any compatible version of one another, so that a
 * project has one copy of each: `instanceof` for errors works only within one copy.
 *
 * @param {Manifest} manifest
 * @param {readonly string[]} own the names of all packages of ours
 * @returns {Manifest}
 */
export function renderManifest(manifest, own) {
  const published = { ...manifest };
  if (published.dependencies !== undefined) {
    const entries = Object.entries(published.dependencies);
    published.dependencies = Object.fromEntries(
      entries.map(([name, version]) => [name, own.includes(name) ? `^${version}` : version]),
    );
  }
  // These are for developing the package.
  delete published.devDependencies;
  delete published.scripts;
  return /** @type {Manifest} */ (withoutSource(published));
}

/**
 * npm passes its own project to the scripts it runs, and to any npm they run. This one works on another project.
 *
 * @param {NodeJS.ProcessEnv} env
 * @returns {NodeJS.ProcessEnv}
 */
export function npmEnvironment(env) {
  const aboutProject =
    /^(npm_(lifecycle|package|command|execpath|node_execpath)|npm_config_(local_prefix|workspaces?|include_workspace_root)$|INIT_CWD$)/i;
  const own = Object.entries(env).filter(([name]) => !aboutProject.test(name));
  return /** @type {NodeJS.ProcessEnv} */ (Object.fromEntries(own));
}

/**
 * @param {unknown} value
 * @returns {unknown}
 */
function withoutSource(value) {
  if (Array.isArray(value)) return value.map(withoutSource);
  if (typeof value !== "object" || value === null) return value;
  const others = Object.entries(value).filter(([key]) => key !== "source");
  return Object.fromEntries(others.map(([key, inner]) => [key, withoutSource(inner)]));
}

/**
 * Whether a package is files that `npm run generate` made and that are committed: it has nothing to import.
 *
 * @param {PublicPackage} one
 */
function isBundle({ manifest }) {
  return Object.keys(manifest.exports ?? {}).every((subpath) => subpath.endsWith(".json"));
}

/**
 * Lays the packages out as in the repository, with everything that is installed there.
 *
 * @param {string} stage
 * @param {readonly PublicPackage[]} packages
 */
function stagePackages(stage, packages) {
  const folders = packages.map(({ folder }) => `${folder}/`);
  const { references } = JSON.parse(readFileSync(path.join(repositoryRoot, "tsconfig.json"), "utf8"));
  const isPublic = (/** @type {{ path: string }} */ { path: project }) =>
    folders.some((folder) => `${project}/`.startsWith(folder));
  const bundles = packages.filter(isBundle).map(({ folder }) => folder);
  const compiled = references
    .filter(isPublic)
    .filter((/** @type {{ path: string }} */ one) => !bundles.includes(one.path));
  writeJson(path.join(stage, "tsconfig.json"), { files: [], references: compiled });
  cpSync(path.join(repositoryRoot, "tsconfig.base.json"), path.join(stage, "tsconfig.base.json"));
  const own = new Map(packages.map(({ folder, manifest }) => [manifest.name, path.join(stage, folder)]));
  linkInstalled(path.join(repositoryRoot, "node_modules"), path.join(stage, "node_modules"), own);
  for (const one of packages) {
    const { folder } = one;
    const left = isBundle(one) ? new Set(["node_modules"]) : leftBehind;
    const from = path.join(repositoryRoot, folder);
    const to = path.join(stage, folder);
    cpSync(from, to, {
      recursive: true,
      filter: (file) => !left.has(path.basename(file)) || path.dirname(file) !== path.normalize(from),
    });
    if (!existsSync(path.join(to, "LICENSE"))) cpSync(path.join(repositoryRoot, "LICENSE"), path.join(to, "LICENSE"));
    const nested = path.join(from, "node_modules");
    if (existsSync(nested)) symlinkSync(nested, path.join(to, "node_modules"));
  }
}

/**
 * Gives all files the same permissions, whatever the umask was when they were checked out and built: tarballs contain them.
 *
 * @param {string} folder
 */
function makeReadable(folder) {
  for (const entry of readdirSync(folder, { withFileTypes: true })) {
    const place = path.join(folder, entry.name);
    if (entry.isDirectory()) makeReadable(place);
    else if (entry.isFile()) chmodSync(place, 0o644);
  }
}

/**
 * Links to everything installed, except our own packages, which come from the stage.
 *
 * @param {string} installed
 * @param {string} target
 * @param {ReadonlyMap<string, string>} own
 * @param {string} scope
 */
function linkInstalled(installed, target, own, scope = "") {
  mkdirSync(target, { recursive: true });
  for (const entry of readdirSync(installed)) {
    const name = scope + entry;
    if ([...own.keys()].some((one) => one.startsWith(`${name}/`))) {
      linkInstalled(path.join(installed, entry), path.join(target, entry), own, `${name}/`);
    } else if (!own.has(name)) symlinkSync(path.join(installed, entry), path.join(target, entry));
  }
  for (const [name, folder] of own) {
    const [base, parent] = [path.posix.basename(name), name.slice(0, name.lastIndexOf("/") + 1)];
    if (parent === scope) symlinkSync(folder, path.join(target, base));
  }
}

/** @param {Manifest} manifest */
function tarballName({ name, version }) {
  return `${name.replace(/^@/, "").replace("/", "-")}-${version}.tgz`;
}

/**
 * @param {string} folder
 * @returns {Manifest}
 */
function readManifest(folder) {
  return JSON.parse(readFileSync(path.join(folder, "package.json"), "utf8"));
}

/**
 * @param {string} file
 * @param {unknown} value
 */
function writeJson(file, value) {
  writeFileSync(file, `${JSON.stringify(value, null, 2)}\n`);
}

/**
 * @param {string} tool
 * @param {readonly string[]} args
 * @param {string} cwd
 * @param {NodeJS.ProcessEnv} env
 * @returns {Promise<void>}
 */
function run(tool, args, cwd, env) {
  return new Promise((resolve, reject) => {
    const child = spawn(tool, args, { cwd, env, stdio: ["ignore", "pipe", "pipe"] });
    let printed = "";
    for (const stream of [child.stdout, child.stderr]) {
      stream.on("data", (chunk) => {
        printed += chunk;
      });
    }
    child.once("error", reject);
    child.once("close", (code) => {
      if (code === 0) resolve();
      else reject(new Error(`${tool} ${args[0]} exited with ${code}:\n${printed}`));
    });
  });
}
