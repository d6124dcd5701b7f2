// npm run release: checks, packs, writes checksums, a signature and release notes. It publishes nothing.
import { spawnSync } from "node:child_process";
import path from "node:path";
import { pathToFileURL } from "node:url";
import { parseArgs } from "node:util";
import { ensureInstalledOrExit, repositoryRoot } from "./ensure-installed.mjs";
import { installedClosure } from "./installed-closure.mjs";
import { findPublicPackages, npmEnvironment, packPackages } from "./pack-packages.mjs";
import { findSection } from "./release/changelog.mjs";
import { checkRelease, checkTests } from "./release/check-release.mjs";
import { cleanCommit, git, readTrackedFiles } from "./release/git.mjs";
import { makeRelease, renderCommands } from "./release/make-release.mjs";
import { prepareRelease } from "./release/prepare-release.mjs";
import { findSigner } from "./release/sign.mjs";
import { readVersion } from "./release/versions.mjs";
import { renderPackagesSbom } from "./render-sbom.mjs";
import { environmentFor, findNodeOrExit } from "./runtime.mjs";

const usage = `Makes a release: tarballs, checksums, a signature, an SBOM and release notes. It publishes nothing.

  npm run release -- --prepare VERSION
  npm run release -- [--dry-run] [--out FOLDER] [--key FILE | --gpg KEY]

  --prepare VERSION  write the version wherever it stands, name the changelog's unreleased section after it, and
                     record what is promised (docs/compatibility.md); commit that, then release
  --dry-run          check everything, print what would be made, and write nothing
  --out FOLDER       where to write the release (default dist/VERSION)
  --key FILE         sign with this SSH key
  --gpg KEY          sign with this OpenPGP key

Without --key and --gpg it signs with the key that git signs with (user.signingkey and gpg.format).
Without a key it does not sign, and says so. docs/releasing.md explains each step.
`;

const options = readOptions();
const signs = /** @type {const} */ ({ right: "✓", note: "!", wrong: "✗" });

try {
  if (options.prepare === undefined) await release();
  else await prepare(options.prepare);
} catch (error) {
  process.stderr.write(`No release was made: ${error instanceof Error ? error.message : error}\n`);
  process.exit(1);
}

function readOptions() {
  try {
    const text = /** @type {const} */ ({ type: "string" });
    const flag = /** @type {const} */ ({ type: "boolean" });
    const { values } = parseArgs({
      options: { prepare: text, out: text, key: text, gpg: text, "dry-run": flag, help: { ...flag, short: "h" } },
    });
    if (values.help === true) {
      process.stdout.write(usage);
      process.exit(0);
    }
    if (values.key !== undefined && values.gpg !== undefined) throw new Error("Name one key: --key or --gpg");
    return values;
  } catch (error) {
    process.stderr.write(`${error instanceof Error ? error.message : error}\n\n${usage}`);
    process.exit(2);
  }
}

/** @param {string} version */
async function prepare(version) {
  const files = prepareRelease(repositoryRoot, version, new Date().toISOString().slice(0, 10));
  for (const file of files) process.stdout.write(`wrote ${file}\n`);
  await recordPromises();
  process.stdout.write(
    `\nRead the section ${version} of CHANGELOG.md, run npm test, and commit: git commit -am "Release ${version}"\n`,
  );
}

/** Records what this version promises, with the packages' own source. */
async function recordPromises() {
  await ensureInstalledOrExit();
  const node = findNodeOrExit();
  const module = pathToFileURL(path.join(repositoryRoot, "tests/compatibility/recorded-promises.ts")).href;
  const args = ["-C", "source", "--input-type=module", "-e", `await (await import("${module}")).recordPromises();`];
  const { status } = spawnSync(node, args, { cwd: repositoryRoot, env: environmentFor(node), stdio: "inherit" });
  if (status !== 0) throw new Error("the promises of this version could not be recorded; see docs/compatibility.md");
  process.stdout.write("wrote tests/compatibility/promised\n");
}

async function release() {
  await ensureInstalledOrExit();
  const env = environmentFor(findNodeOrExit());
  // A relative path is relative to the folder in which npm was started.
  const here = process.env.INIT_CWD ?? process.cwd();
  const given = { key: options.key === undefined ? undefined : path.resolve(here, options.key), gpg: options.gpg };
  const signer = findSigner(repositoryRoot, given);
  const findings = [...checkRelease(repositoryRoot, signer), checkGenerated(env), checkTests(repositoryRoot)];
  for (const { name, kind, detail } of findings) process.stdout.write(`${signs[kind]} ${name.padEnd(10)} ${detail}\n`);
  const wrong = findings.filter(({ kind }) => kind === "wrong");
  const version = readVersion(readTrackedFiles(repositoryRoot));
  const folder =
    options.out === undefined ? path.join(repositoryRoot, "dist", version) : path.resolve(here, options.out);
  if (wrong.length > 0) {
    throw new Error(
      `${wrong.length === 1 ? "one check" : `${wrong.length} checks`} failed: ${wrong.map(({ name }) => name).join(", ")}`,
    );
  }
  const shown = path.relative(here, folder) || ".";
  if (options["dry-run"] === true) {
    const names = findPublicPackages().map(({ manifest }) => manifest.name);
    process.stdout.write(`\nThis would write ${names.length} tarballs to ${shown}: ${names.join(", ")}\n`);
    return;
  }
  if (findings.at(-1)?.kind !== "right") runTests(env);
  await writeRelease({ env, folder, version, signer, shown });
}

/**
 * @param {object} plan
 * @param {NodeJS.ProcessEnv} plan.env
 * @param {string} plan.folder
 * @param {string} plan.version
 * @param {import("./release/sign.mjs").Signer | undefined} plan.signer
 * @param {string} plan.shown
 */
async function writeRelease({ env, folder, version, signer, shown }) {
  const commit = cleanCommit(repositoryRoot);
  if (commit === undefined) throw new Error("the tests left changes behind; git status shows them");
  const starts = findPublicPackages().map((one) => one.folder);
  const { files, order } = await makeRelease(folder, {
    root: repositoryRoot,
    ...{ version, commit, signer },
    notes: findSection(readTrackedFiles(repositoryRoot).get("CHANGELOG.md") ?? "", version)?.text ?? "",
    sbom: renderPackagesSbom(version, installedClosure(starts)),
    tools: { node: readToolVersion("node", env), npm: readToolVersion("npm", npmEnvironment(env)) },
    pack: (target) => packPackages(target, env),
  });
  for (const file of files) process.stdout.write(`wrote ${path.join(shown, file)}\n`);
  if (signer === undefined) process.stdout.write("\nThe release is not signed, because there is no signing key.\n");
  const remote = git(repositoryRoot, "config", "branch.main.remote") || "origin";
  const commands = renderCommands({
    folder: shown,
    version,
    remote,
    canSign: findSigner(repositoryRoot, {}) !== undefined,
    order,
  });
  process.stdout.write(`\nNothing was published. To publish, run these in this order:\n\n  ${commands.join("\n  ")}\n`);
}

/**
 * @param {NodeJS.ProcessEnv} env
 * @returns {import("./release/check-release.mjs").Finding}
 */
function checkGenerated(env) {
  const args = [path.join(repositoryRoot, "scripts/generate.mjs"), "--check"];
  const { status, stderr } = spawnSync("node", args, { cwd: repositoryRoot, env, encoding: "utf8" });
  if (status === 0) return { name: "generated", kind: "right", detail: "every generated file is fresh" };
  return { name: "generated", kind: "wrong", detail: stderr.trim() };
}

/** @param {NodeJS.ProcessEnv} env */
function runTests(env) {
  process.stdout.write("\nRunning npm test…\n");
  const { status } = spawnSync("npm", ["test"], { cwd: repositoryRoot, env: npmEnvironment(env), stdio: "inherit" });
  if (status !== 0) throw new Error("npm test failed");
}

/**
 * @param {string} tool
 * @param {NodeJS.ProcessEnv} env
 */
function readToolVersion(tool, env) {
  const { stdout } = spawnSync(tool, ["--version"], { env, encoding: "utf8" });
  return String(stdout).trim().replace(/^v/, "");
}
