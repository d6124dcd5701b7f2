import { createHash } from "node:crypto";
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import path from "node:path";
import { namespace, signersFile, signFile } from "./sign.mjs";

/**
 * @typedef {import("./sign.mjs").Signer} Signer
 * @typedef {import("../pack-packages.mjs").Manifest} Manifest
 *
 * @typedef {object} ReleaseParts
 * @property {string} root of the repository
 * @property {string} version
 * @property {string} commit
 * @property {string} notes the section of the changelog
 * @property {object} sbom
 * @property {{ node: string, npm: string }} tools that other versions of might make other bytes
 * @property {Signer | undefined} signer
 * @property {(folder: string) => Promise<readonly { manifest: Manifest }[]>} pack writes the tarballs
 */

/** Lists the digests of all other files, as `sha256sum --check` reads it. */
export const checksumsFile = "SHA256SUMS";

/**
 * Writes everything that is published with a release to `folder`, which appears when it is complete. The same commit, packed by the
 * same tools, gives the same bytes, but for the signature.
 *
 * @param {string} folder
 * @param {ReleaseParts} parts
 * @returns {Promise<{ files: readonly string[], order: readonly string[] }>} the names of the files, and of the packages in the order
 *   to publish them
 */
export async function makeRelease(folder, parts) {
  refuseForeign(folder);
  const target = path.resolve(folder);
  mkdirSync(path.dirname(target), { recursive: true });
  const stage = mkdtempSync(`${target}.part-`);
  try {
    const packed = await parts.pack(stage);
    const { version, commit, tools } = parts;
    writeJson(path.join(stage, "build.json"), { version, commit, ...tools });
    writeJson(path.join(stage, `sluice-${version}.cdx.json`), parts.sbom);
    writeFileSync(path.join(stage, "RELEASE_NOTES.md"), renderNotes(parts));
    const sums = path.join(stage, checksumsFile);
    writeFileSync(sums, renderChecksums(stage));
    if (parts.signer !== undefined) signFile(parts.root, parts.signer, sums);
    rmSync(target, { recursive: true, force: true });
    renameSync(stage, target);
    return { files: readdirSync(target).toSorted(), order: orderPackages(packed.map(({ manifest }) => manifest)) };
  } finally {
    rmSync(stage, { recursive: true, force: true });
  }
}

/**
 * Digests of all files of a folder, one line each.
 *
 * @param {string} folder
 */
export function renderChecksums(folder) {
  const lines = readdirSync(folder)
    .toSorted()
    .map(
      (file) =>
        `${createHash("sha256")
          .update(readFileSync(path.join(folder, file)))
          .digest("hex")}  ${file}\n`,
    );
  return lines.join("");
}

/**
 * Packages after those they depend on, so that each can be installed as soon as it is published.
 *
 * @param {readonly Manifest[]} manifests
 * @returns {readonly string[]} names
 */
export function orderPackages(manifests) {
  const byName = new Map(manifests.map((manifest) => [manifest.name, manifest]));
  /** @type {Set<string>} */
  const ordered = new Set();
  const visit = (/** @type {Manifest} */ manifest) => {
    if (ordered.has(manifest.name)) return;
    const { dependencies, optionalDependencies, peerDependencies } = manifest;
    for (const name of Object.keys({ ...dependencies, ...optionalDependencies, ...peerDependencies })) {
      const needed = byName.get(name);
      if (needed !== undefined) visit(needed);
    }
    ordered.add(manifest.name);
  };
  for (const manifest of manifests) visit(manifest);
  return [...ordered];
}

/**
 * What a person runs to publish, in this order. Nothing here runs it.
 *
 * @param {object} release
 * @param {string} release.folder
 * @param {string} release.version
 * @param {string} release.remote
 * @param {boolean} release.canSign whether git has a key to sign the tag with
 * @param {readonly string[]} release.order
 */
export function renderCommands({ folder, version, remote, canSign, order }) {
  const isCandidate = version.includes("-");
  const tarball = (/** @type {string} */ name) => `${name.replace(/^@/, "").replace("/", "-")}-${version}.tgz`;
  return [
    `git tag ${canSign ? "--sign" : "--annotate"} v${version} --cleanup=verbatim --file ${folder}/RELEASE_NOTES.md`,
    `git push ${remote} main v${version}`,
    ...order.map(
      (name) => `npm publish ${folder}/${tarball(name)} --access public --tag ${isCandidate ? "next" : "latest"}`,
    ),
    `npm run image -- --tag sluice:${version} --archive sluice-${version}.tar`,
  ];
}

/** @param {ReleaseParts} parts */
function renderNotes({ version, commit, notes, signer }) {
  const check =
    signer === undefined
      ? ["These files are not signed."]
      : signer.kind === "ssh"
        ? [
            `Take \`${signersFile}\` from a clone that you trust, and \`NAME\` from its line for this key:`,
            "",
            "```sh",
            `ssh-keygen -Y verify -f ${signersFile} -I NAME -n ${namespace} -s ${checksumsFile}.sig < ${checksumsFile}`,
            "```",
          ]
        : [
            `Compare the fingerprint with \`${signersFile}\` of a clone that you trust:`,
            "",
            "```sh",
            `gpg --verify ${checksumsFile}.asc ${checksumsFile}`,
            "```",
          ];
  const verify = ["```sh", `sha256sum --check ${checksumsFile}`, "```", "", ...check];
  return `${[`# Sluice ${version}`, "", notes, "", "## Verify", "", `Made from commit ${commit}.`, "", ...verify].join("\n")}\n`;
}

/**
 * Refuses to replace a folder that is not a release.
 *
 * @param {string} folder
 */
function refuseForeign(folder) {
  if (!existsSync(folder)) return;
  const files = readdirSync(folder);
  if (files.length === 0 || files.includes(checksumsFile)) return;
  throw new Error(`${folder} has files, and is not a release that may be replaced. Name another folder with --out`);
}

/**
 * @param {string} file
 * @param {unknown} value
 */
function writeJson(file, value) {
  writeFileSync(file, `${JSON.stringify(value, null, 2)}\n`);
}
