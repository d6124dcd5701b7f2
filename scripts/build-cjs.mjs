import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import path from "node:path";

/**
 * @typedef {import("./pack-packages.mjs").Manifest} Manifest
 * @typedef {{ types: string, default: string }} Target
 */

/** Where modules and declarations for `require` lie. */
const folderName = "dist/cjs";

/**
 * Whether a package is also built as CommonJS: one that runs on Node 20. Its oldest releases cannot `require` an ES module, and
 * neither can Jest on them. Packages that need a newer Node do without: every such Node can.
 *
 * @param {Manifest} manifest
 */
export function hasCommonJs(manifest) {
  return manifest.engines?.node === ">=20" && findTargets(manifest).length > 0;
}

/**
 * Builds what `require` loads, from what `tsc` wrote to `dist`: one file for each subpath, and chunks for what they share, so that a
 * class exists once. Declarations are copied, module by module.
 *
 * @param {string} folder of the package
 * @param {Manifest} manifest
 */
export async function buildCommonJs(folder, manifest) {
  // Not above: scripts load this file before they install what is missing.
  const { rolldown } = await import("rolldown");
  const input = Object.fromEntries(
    findTargets(manifest).map(([, target]) => [entryName(target.default), path.join(folder, target.default)]),
  );
  const build = await rolldown({
    input,
    // Comments name modules from here: a temporary folder would make every build different.
    cwd: folder,
    platform: "node",
    external: (/** @type {string} */ id) => !id.startsWith(".") && !path.isAbsolute(id),
    treeshake: { moduleSideEffects: false },
    logLevel: "silent",
  });
  try {
    await build.write({
      dir: path.join(folder, folderName),
      format: "cjs",
      exports: "named",
      entryFileNames: "[name].cjs",
      chunkFileNames: "chunks/[name].cjs",
    });
  } finally {
    await build.close();
  }
  copyDeclarations(
    folder,
    findTargets(manifest).map(([, target]) => target.types),
  );
}

/**
 * The manifest's `exports` with both builds. A Node that can load an ES module with `require` takes it for `import` and `require`
 * alike, by the condition `module-sync`: then a process has one copy of every class. Other Nodes and Jest take CommonJS.
 *
 * @param {Manifest} manifest
 * @returns {Manifest}
 */
export function exportCommonJs(manifest) {
  const both = findTargets(manifest).map(([subpath, target]) => {
    const name = entryName(target.default);
    const required = { types: `./${folderName}/${name}.d.cts`, default: `./${folderName}/${name}.cjs` };
    return [subpath, { "module-sync": target, import: target, require: required, default: target }];
  });
  return { ...manifest, exports: { ...manifest.exports, ...Object.fromEntries(both) } };
}

/**
 * @param {Manifest} manifest
 * @returns {readonly (readonly [string, Target])[]}
 */
function findTargets(manifest) {
  return Object.entries(manifest.exports ?? {}).flatMap(([subpath, target]) => {
    if (typeof target !== "object" || target === null || !("types" in target) || !("default" in target)) return [];
    return [/** @type {const} */ ([subpath, { types: String(target.types), default: String(target.default) }])];
  });
}

/** `./dist/nest/index.js` is `nest/index`. @param {string} file */
function entryName(file) {
  return file.replace(/^\.\/dist\//, "").replace(/\.js$/, "");
}

/**
 * The declarations that entries lead to. Under `dist/cjs` a name ends in `.d.cts`, and so does every module it names.
 *
 * @param {string} folder
 * @param {readonly string[]} entries
 */
function copyDeclarations(folder, entries) {
  const dist = path.join(folder, "dist");
  const seen = new Set();
  const visit = (/** @type {string} */ file) => {
    if (seen.has(file)) return;
    seen.add(file);
    const text = readFileSync(file, "utf8").replace(/^\/\/# sourceMappingURL=.*\n?/m, "");
    const specifier = /(\bfrom |\bimport\()"(\.[^"]+?)(?:\.d)?\.(ts|js)"/g;
    const renamed = text.replaceAll(specifier, (_, before, name) => {
      visit(`${path.resolve(path.dirname(file), name)}.d.ts`);
      return `${before}"${name}.cjs"`;
    });
    const target = path.join(folder, folderName, path.relative(dist, file).replace(/\.d\.ts$/, ".d.cts"));
    mkdirSync(path.dirname(target), { recursive: true });
    writeFileSync(target, renamed);
  };
  for (const entry of entries) visit(path.join(folder, entry));
}
