import { createHash } from "node:crypto";

/**
 * @typedef {import("./installed-closure.mjs").InstalledPackage} InstalledPackage
 * @typedef {import("./image-root.mjs").DebianPackage} DebianPackage
 *
 * @typedef {object} ImageContents
 * @property {string} version of Sluice
 * @property {string} nodeVersion
 * @property {string} codename of the Debian release: `bookworm`
 * @property {readonly InstalledPackage[]} packages
 * @property {readonly DebianPackage[]} debian
 */

/**
 * What an image contains, as CycloneDX 1.5. The same contents give the same document, so that builds can be compared.
 *
 * @param {ImageContents} contents
 */
export function renderSbom({ version, nodeVersion, codename, packages, debian }) {
  const components = [
    { type: "framework", name: "node", version: nodeVersion, purl: `pkg:generic/node@${nodeVersion}` },
    ...packages.map(renderPackage),
    ...debian.map(({ name, version: own, architecture }) => ({
      type: "library",
      name,
      version: own,
      purl: `pkg:deb/debian/${name}@${encodeURIComponent(own)}?arch=${architecture}&distro=${codename}`,
    })),
  ];
  return renderDocument({ type: "container", name: "sluice", version }, components);
}

/**
 * What the published packages need at run time, at the versions they were tested with.
 *
 * @param {string} version of Sluice
 * @param {readonly InstalledPackage[]} packages
 */
export function renderPackagesSbom(version, packages) {
  return renderDocument({ type: "application", name: "sluice", version }, packages.map(renderPackage));
}

/**
 * @param {{ type: string, name: string, version: string }} subject
 * @param {readonly { purl: string }[]} components
 */
function renderDocument(subject, components) {
  const digest = createHash("sha256").update(JSON.stringify(components)).digest("hex");
  return {
    bomFormat: "CycloneDX",
    specVersion: "1.5",
    serialNumber: `urn:uuid:${uuidFrom(digest)}`,
    version: 1,
    metadata: { component: subject },
    components: components.map((component) => ({ "bom-ref": component.purl, ...component })),
  };
}

/** @param {InstalledPackage} installed */
function renderPackage({ name, version, licence, integrity }) {
  const hash = /^sha512-(.+)$/.exec(integrity ?? "")?.[1];
  return {
    type: "library",
    name,
    version,
    ...(licence === undefined ? {} : { licenses: [{ expression: licence }] }),
    ...(hash === undefined
      ? {}
      : { hashes: [{ alg: "SHA-512", content: Buffer.from(hash, "base64").toString("hex") }] }),
    purl: `pkg:npm/${name.replace("@", "%40")}@${version}`,
  };
}

/** A UUID of version 8, which is made from a digest. @param {string} hex */
function uuidFrom(hex) {
  return [hex.slice(0, 8), hex.slice(8, 12), `8${hex.slice(13, 16)}`, `8${hex.slice(17, 20)}`, hex.slice(20, 32)].join(
    "-",
  );
}
