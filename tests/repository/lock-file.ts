import type { SourceTree } from "./source-tree.ts";

type Manifest = Readonly<Record<string, Readonly<Record<string, string>> | undefined>>;

const dependencyFields = ["dependencies", "devDependencies", "optionalDependencies", "peerDependencies"];

/** Where package.json files and the lock file disagree, and versions that are not pinned, one line each. */
export function findLockProblems(tree: SourceTree): readonly string[] {
  const lock = JSON.parse(tree.get("package-lock.json") ?? "{}") as { packages?: Record<string, Manifest> };
  const problems: string[] = [];
  for (const [file, text] of tree) {
    if (!/(^|\/)package\.json$/.test(file)) continue;
    const manifest = JSON.parse(text) as Manifest;
    const locked = lock.packages?.[file.replace(/\/?package\.json$/, "")] ?? {};
    for (const field of dependencyFields) {
      const wanted = manifest[field] ?? {};
      const known = locked[field] ?? {};
      for (const [name, version] of Object.entries(wanted)) {
        if (field !== "peerDependencies" && !/^(npm:(@[\w.-]+\/)?[\w.-]+@)?\d+\.\d+\.\d+(-[\w.]+)?$/.test(version)) {
          problems.push(`${file}: ${name} is not pinned to one version but to ${version}`);
        }
        if (known[name] !== version)
          problems.push(`${file}: ${name} ${version} is not in the lock file; run \`npm install\``);
      }
      for (const name of Object.keys(known)) {
        if (!(name in wanted)) problems.push(`${file}: ${name} is in the lock file alone; run \`npm install\``);
      }
    }
  }
  return problems;
}
