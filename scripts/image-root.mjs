import { spawnSync } from "node:child_process";
import {
  chmodSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { repositoryRoot } from "./ensure-installed.mjs";
import { installedClosure } from "./installed-closure.mjs";
import { packPackages } from "./pack-packages.mjs";
import { renderSbom } from "./render-sbom.mjs";
import { environmentFor } from "./runtime.mjs";

/** The image could not be built on this machine; the message says why. */
export class ImageError extends Error {}

/** Who the container runs as: a user without a name anywhere else. */
export const imageUser = 65_532;

/** What the image is made of, by folder: the command, the server, and the console that it serves. */
export const imagePackages = ["packages/cli", "packages/server", "packages/console"];

const appFolder = "opt/sluice";
const command = `${appFolder}/node_modules/@sluice/cli/dist/main.js`;

/** Files of packages that a running server never reads. */
const needless = /\.(d\.[cm]?ts|map|md|markdown|test\.[cm]?js)$|(^|\/)(src|test|tests|docs|\.github)(\/|$)/i;
/** Licences travel with the code. */
const isLicence = /^(licen[cs]e|notice|copying)/i;

/**
 * @typedef {object} DebianPackage
 * @property {string} name
 * @property {string} version
 * @property {string} architecture
 */

/**
 * Writes the files of the image: `base` has Node and the libraries that it is linked with, `app` has Sluice and its
 * dependencies at the versions of the lock file. There is nothing else, and so no shell.
 *
 * @param {string} folder
 * @param {string} node the Node to put into the image
 * @returns {Promise<void>}
 */
export async function writeImageRoot(folder, node) {
  if (process.platform !== "linux" || !existsSync("/usr/bin/dpkg-query"))
    throw new ImageError(
      "the image takes Node's libraries from Debian, and this is another system; use the Containerfile",
    );
  const base = path.join(folder, "base");
  const app = path.join(folder, "app");
  const debian = writeBase(base, node);
  const packages = await writeApp(app, node);
  const { version } = JSON.parse(readFileSync(path.join(repositoryRoot, "packages/cli/package.json"), "utf8"));
  const nodeVersion = run(node, ["--version"]).trim().slice(1);
  const sbom = renderSbom({ version, nodeVersion, packages, debian, codename: readRelease() });
  write(path.join(app, "usr/share/sluice/sbom.cdx.json"), `${JSON.stringify(sbom, null, 2)}\n`);
}

/**
 * @param {string} base
 * @param {string} node
 * @returns {readonly DebianPackage[]}
 */
function writeBase(base, node) {
  copy(node, path.join(base, "usr/local/bin/node"));
  /** @type {Map<string, DebianPackage>} */
  const debian = new Map();
  for (const library of listLibraries(node)) {
    copy(realpathSync(library), path.join(base, library));
    const owner = findOwner(library);
    if (owner !== undefined) debian.set(owner.name, owner);
  }
  if (debian.size === 0) throw new ImageError("no package of this machine owns the libraries of Node; is it a Debian?");
  for (const { name } of debian.values()) {
    const copyright = `usr/share/doc/${name}/copyright`;
    if (existsSync(`/${copyright}`)) copy(`/${copyright}`, path.join(base, copyright));
    // Where scanners look for the packages of images without dpkg.
    write(path.join(base, "var/lib/dpkg/status.d", name), run("dpkg-query", ["--status", name]));
  }
  copy(realpathSync("/etc/os-release"), path.join(base, "etc/os-release"));
  write(path.join(base, "etc/nsswitch.conf"), "hosts: files dns\n");
  write(
    path.join(base, "etc/passwd"),
    `root:x:0:0:root:/:/none\nsluice:x:${imageUser}:${imageUser}:Sluice:/var/lib/sluice:/none\n`,
  );
  write(path.join(base, "etc/group"), `root:x:0:\nsluice:x:${imageUser}:\n`);
  for (const name of ["tmp", "run/sluice", "var/lib/sluice"]) {
    mkdirSync(path.join(base, name), { recursive: true });
    chmodSync(path.join(base, name), 0o1777);
  }
  return [...debian.values()];
}

/**
 * @param {string} app
 * @param {string} node
 */
async function writeApp(app, node) {
  const closure = installedClosure(imagePackages);
  const modules = path.join(app, appFolder, "node_modules");
  const stage = mkdtempSync(path.join(tmpdir(), "sluice-image-"));
  try {
    const packed = await packPackages(stage, environmentFor(node));
    for (const { name } of closure.filter(({ own }) => own)) {
      const found = packed.find(({ manifest }) => manifest.name === name);
      if (found === undefined) throw new ImageError(`${name} is not among the packages that are published`);
      const target = path.join(modules, name);
      mkdirSync(target, { recursive: true });
      run("tar", ["--extract", "--file", found.tarball, "--directory", target, "--strip-components=1"]);
      prune(target);
    }
  } finally {
    rmSync(stage, { recursive: true, force: true });
  }
  for (const { place, own } of closure) {
    if (own) continue;
    if (!place.startsWith("node_modules/")) throw new ImageError(`${place} is not at the root, and would not be found`);
    const from = path.join(repositoryRoot, place);
    cpSync(from, path.join(app, appFolder, place), {
      recursive: true,
      filter: (file) => file === from || isNeeded(path.relative(from, file)),
    });
  }
  // The kernel starts Node by the first line, without a shell or env.
  write(path.join(app, "usr/local/bin/sluice"), `#!/usr/local/bin/node\nimport("/${command}");\n`);
  chmodSync(path.join(app, "usr/local/bin/sluice"), 0o755);
  return closure;
}

/** @param {string} folder of one of our packages */
function prune(folder) {
  for (const name of ["src", "AGENTS.md", "README.md"])
    rmSync(path.join(folder, name), { recursive: true, force: true });
  run("find", [folder, "(", "-name", "*.d.ts", "-o", "-name", "*.map", "-o", "-path", "*/testing/*", ")", "-delete"]);
}

/** @param {string} file from the package's folder */
function isNeeded(file) {
  // Packages below it are in the closure themselves, if they are needed.
  if (file.split(path.sep)[0] === "node_modules") return false;
  return isLicence.test(path.basename(file)) || !needless.test(file) || isCode(file);
}

/** Folders such as `src` that a package's code is in. @param {string} file */
function isCode(file) {
  return /(^|\/)src(\/|$)/.test(file) && !/\.(d\.[cm]?ts|[cm]?ts|map)$/.test(file);
}

/**
 * The libraries that a program is linked with, and the loader.
 *
 * @param {string} program
 */
export function listLibraries(program) {
  const lines = run("ldd", [program]).split("\n");
  return lines.flatMap((line) => {
    const found = /^\s*(?:\S+ => )?(\/\S+) \(0x[0-9a-f]+\)$/.exec(line);
    return found === null ? [] : [/** @type {string} */ (found[1])];
  });
}

/**
 * The package that a file comes from. Packages name files in /lib or in /usr/lib, which is one folder.
 *
 * @param {string} file
 * @returns {DebianPackage | undefined}
 */
function findOwner(file) {
  const spellings = [
    file,
    `/usr${file}`,
    file.replace(/^\/usr/, ""),
    realpathSync(file),
    realpathSync(file).replace(/^\/usr/, ""),
  ];
  for (const spelling of spellings) {
    const { status, stdout } = spawnSync("dpkg-query", ["--search", spelling], { encoding: "utf8" });
    if (status !== 0) continue;
    const name = /** @type {string} */ (stdout.split(": ", 1)[0]);
    // `libc6:amd64`, a tab and the version.
    const [qualified = "", version = ""] = run("dpkg-query", ["--show", name]).trim().split("\t");
    const [plain = "", architecture = "all"] = qualified.split(":");
    return { name: plain, version, architecture };
  }
  return undefined;
}

function readRelease() {
  return /^VERSION_CODENAME="?([\w-]+)/m.exec(readFileSync("/etc/os-release", "utf8"))?.[1] ?? "stable";
}

/**
 * @param {string} from
 * @param {string} to
 */
function copy(from, to) {
  mkdirSync(path.dirname(to), { recursive: true });
  cpSync(from, to, { dereference: true });
}

/**
 * @param {string} file
 * @param {string} text
 */
function write(file, text) {
  mkdirSync(path.dirname(file), { recursive: true });
  writeFileSync(file, text);
}

/**
 * @param {string} tool
 * @param {readonly string[]} args
 */
function run(tool, args) {
  const { status, stdout, stderr, error } = spawnSync(tool, args, { encoding: "utf8", maxBuffer: 64 * 1024 * 1024 });
  if (status === 0) return stdout;
  throw new ImageError(`${tool} ${args[0]} failed: ${error?.message ?? stderr.trim()}`);
}
