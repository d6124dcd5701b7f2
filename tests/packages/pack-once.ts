import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, statSync } from "node:fs";
import path from "node:path";
import { findPublicPackages, packPackages } from "../../scripts/pack-packages.mjs";
import { repositoryRoot } from "../repository/source-tree.ts";

const cache = path.join(repositoryRoot, "node_modules/.cache/packed");
const keptMs = 86_400_000;

/** The tarball of every public package, by its name. Files of tests share them: packing takes longer than most tests. */
export async function packOnce(env: NodeJS.ProcessEnv): Promise<ReadonlyMap<string, string>> {
  const folder = path.join(cache, digestSources());
  if (!existsSync(folder)) {
    removeOld();
    // Another file may be packing as well; whichever is first is kept.
    const own = `${folder}.${process.pid}`;
    mkdirSync(own, { recursive: true });
    try {
      await packPackages(own, env);
      if (!existsSync(folder)) renameSync(own, folder);
    } finally {
      rmSync(own, { recursive: true, force: true });
    }
  }
  return new Map(
    findPublicPackages().map(({ manifest: { name, version } }) => [
      name,
      path.join(folder, `${name.replace(/^@/, "").replace("/", "-")}-${version}.tgz`),
    ]),
  );
}

/** A digest of everything that goes into packages, and of what packs them. */
function digestSources(): string {
  const hash = createHash("sha256");
  const add = (file: string): void => {
    const content = readFileSync(path.join(repositoryRoot, file));
    hash.update(`${file} ${content.length}\n`).update(content);
  };
  for (const file of ["package-lock.json", "package.json", "LICENSE", "tsconfig.base.json", "tsconfig.json"]) add(file);
  const visit = (folder: string): void => {
    const entries = readdirSync(path.join(repositoryRoot, folder), { withFileTypes: true });
    for (const entry of entries.toSorted((one, other) => (one.name < other.name ? -1 : 1))) {
      const file = `${folder}/${entry.name}`;
      // What is built is made anew, but for the console's files, which are committed.
      const built = /\/(node_modules|dist)$/.test(file) && file !== "packages/console/dist";
      if (entry.isDirectory() && !built) visit(file);
      else if (entry.isFile()) add(file);
    }
  };
  for (const folder of ["packages", "scripts"]) visit(folder);
  return hash.digest("hex").slice(0, 32);
}

function removeOld(): void {
  mkdirSync(cache, { recursive: true });
  for (const name of readdirSync(cache)) {
    const folder = path.join(cache, name);
    if (statSync(folder).mtimeMs < Date.now() - keptMs) rmSync(folder, { recursive: true, force: true });
  }
}
