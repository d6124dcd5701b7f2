import { existsSync, readdirSync, readFileSync } from "node:fs";
import path from "node:path";
import { findImports } from "../repository/module-syntax.ts";

/** What `exports` and `bin` of a manifest name: the files that people reach. */
export function findEntries(manifest: Readonly<Record<string, unknown>>): readonly string[] {
  const found = new Set<string>();
  const visit = (target: unknown): void => {
    if (typeof target === "string") found.add(path.posix.normalize(target));
    else if (typeof target === "object" && target !== null) for (const inner of Object.values(target)) visit(inner);
  };
  visit(manifest.exports);
  visit(manifest.bin);
  return [...found];
}

/** What can be imported by name: `sluice`, `sluice/store`. */
export function findSpecifiers(manifest: Readonly<Record<string, unknown>>): readonly string[] {
  const subpaths = Object.keys(manifest.exports ?? {});
  const patterns = subpaths.filter((subpath) => subpath.includes("*") || !subpath.startsWith("."));
  if (patterns.length > 0) throw new Error(`exports of ${manifest.name}: ${patterns} is not a plain subpath`);
  return subpaths
    .filter((subpath) => !subpath.endsWith(".json"))
    .map((subpath) => path.posix.join(String(manifest.name), subpath));
}

/** The problems of a package that was unpacked to `folder`, one line each. */
export function findFileProblems(folder: string): readonly string[] {
  const files = readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => path.relative(folder, path.join(entry.parentPath, entry.name)))
    // What npm put beneath it belongs to others.
    .filter((file) => !file.startsWith("node_modules"));
  const manifest = JSON.parse(readFileSync(path.join(folder, "package.json"), "utf8")) as Record<string, unknown>;
  return [
    ...["README.md", "LICENSE"].filter((file) => !files.includes(file)).map((file) => `there is no ${file}`),
    ...files.filter((file) => /\.test\.|\.tsbuildinfo$/.test(file)).map((file) => `${file} is of no use to users`),
    ...findLostSources(folder, files),
    ...findUnreached(folder, files, findEntries(manifest)),
  ];
}

/** Maps that lead to a file that is not there, and sources that no map leads to. */
function findLostSources(folder: string, files: readonly string[]): readonly string[] {
  const problems: string[] = [];
  const mapped = new Set<string>();
  for (const file of files.filter((name) => name.endsWith(".map"))) {
    const { sources } = JSON.parse(readFileSync(path.join(folder, file), "utf8")) as { sources: readonly string[] };
    for (const source of sources) {
      const place = path.join(path.dirname(file), source);
      if (files.includes(place)) mapped.add(place);
      else problems.push(`${file} leads to ${source}, which is not there`);
    }
  }
  const sources = files.filter((file) => file.startsWith("src/") && file.endsWith(".ts"));
  return [
    ...problems,
    ...sources.filter((file) => !mapped.has(file)).map((file) => `${file} is the source of nothing`),
  ];
}

/** Entries that are not there, and modules that no entry leads to. */
function findUnreached(folder: string, files: readonly string[], entries: readonly string[]): readonly string[] {
  const reached = new Set<string>();
  const problems: string[] = [];
  const visit = (file: string, from: string): void => {
    if (reached.has(file)) return;
    reached.add(file);
    if (!existsSync(path.join(folder, file))) {
      problems.push(`${from} leads to ${file}, which is not there`);
      return;
    }
    if (!/\.(c?[jt]s|html)$/.test(file)) return;
    const text = readFileSync(path.join(folder, file), "utf8");
    if (file.endsWith(".html")) {
      for (const [, named = ""] of text.matchAll(/ (?:src|href)="\/([^"]+\.js)"/g))
        visit(path.join(path.dirname(file), named), file);
      return;
    }
    // A user of a module may need the types of the modules it imports.
    const declaration = `${moduleName(file)}.d.${/\.c[jt]s$/.test(file) ? "cts" : "ts"}`;
    if (files.includes(declaration)) visit(declaration, file);
    for (const next of namedModules(text, files)) visit(path.join(path.dirname(file), next), file);
    for (const specifier of file.endsWith(".cjs")
      ? findRequired(text)
      : findImports(text).map((one) => one.specifier)) {
      if (!specifier.startsWith(".")) continue;
      // A declaration names the module that it was generated from, and means the declaration next to it.
      const means = file.endsWith(".d.cts") ? specifier.replace(/\.cjs$/, ".d.cts") : specifier;
      visit(path.join(path.dirname(file), means.replace(/(?<!\.d)\.ts$/, ".d.ts")), file);
    }
  };
  // Pages are entries too: browsers begin with them.
  for (const entry of [...entries, ...files.filter((file) => file.endsWith(".html"))]) visit(entry, "package.json");
  // A declaration may be all that is needed of a module.
  const modules = new Set(files.filter((file) => /^dist\/.*\.c?[jt]s$/.test(file)).map(moduleName));
  for (const file of reached) modules.delete(moduleName(file));
  return [...problems, ...[...modules].map((module) => `nothing leads to ${module}`)];
}

function moduleName(file: string): string {
  return file.replace(/(\.d)?\.c?[jt]s$/, "");
}

/** What CommonJS loads when it starts. */
function findRequired(text: string): readonly string[] {
  return [...text.matchAll(/\brequire\("([^"]+)"\)/g)].map(([, specifier = ""]) => specifier);
}

/** The modules of a worker are named in a URL, with or without the extension of what runs. */
function namedModules(text: string, files: readonly string[]): readonly string[] {
  const names = [...text.matchAll(/new URL\(["'`]([\w./-]+?)(?:\.\$\{[^}]*\}|\.js)["'`]/g)].map(
    ([, name = ""]) => name,
  );
  return names
    .flatMap((name) => [`${name}.js`, `${name}.d.ts`])
    .filter((name) => files.some((file) => file.endsWith(name)));
}
