// Makes packages/redis/src/scripts.generated.ts from the Lua files next to it: one operation per file, includes first, comments removed.
import { createHash } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import path from "node:path";
import { repositoryRoot } from "./ensure-installed.mjs";

const folder = path.join(repositoryRoot, "packages/redis/src/scripts");

/** @returns {string} */
export function renderScripts() {
  const includes = new Map(luaFiles(path.join(folder, "include")));
  const scripts = luaFiles(folder).map(([name, text]) => ({ name, ...compileScript(name, text, includes) }));
  const entries = scripts.map(
    ({ name, purpose, source, digest }) =>
      `  /** ${purpose} */\n  ${camel(name)}: {\n    digest: "${digest}",\n    source: ${quoted(source)},\n  },\n`,
  );
  return `// Made from the Lua files in scripts/ by \`npm run generate\`. Do not edit.

/** A script, and the digest by which servers know it. */
export interface Script {
  readonly digest: string;
  readonly source: string;
}

export type ScriptName =${scripts.map(({ name }) => `\n  | "${camel(name)}"`).join("")};

export const scripts: Readonly<Record<ScriptName, Script>> = {
${entries.join("")}};
`;
}

/**
 * A file's header is its signature: purpose, KEYS, ARGV, returns, include. Throws if the header disagrees with the body.
 *
 * @param {string} name
 * @param {string} text
 * @param {ReadonlyMap<string, string>} includes
 */
export function compileScript(name, text, includes) {
  const lines = text.split("\n");
  const headerLength = lines.findIndex((line) => !line.startsWith("---"));
  const header = lines.slice(0, headerLength).map((line) => line.replace(/^---\s?/, ""));
  const purpose = header[0] ?? "";
  if (!/^[A-Z][^:]* /.test(purpose)) throw new Error(`${name}.lua: the first line must say what the script is for`);
  for (const field of ["KEYS", "returns"]) {
    if (!header.some((line) => line.startsWith(`${field}:`)))
      throw new Error(`${name}.lua: its header has no ${field}`);
  }
  const wanted = (header.find((line) => line.startsWith("include:"))?.slice("include:".length) ?? "")
    .split(",")
    .map((one) => one.trim())
    .filter((one) => one !== "");
  const parts = wanted.map((one) => {
    const include = includes.get(one);
    if (include === undefined) throw new Error(`${name}.lua: there is no include/${one}.lua`);
    return include;
  });
  const body = [...parts, lines.slice(headerLength).join("\n")].join("\n");
  const declared = new Set(header.flatMap((line) => /^ARGV\[(\d+)\]:/.exec(line)?.[1] ?? []));
  const used = new Set([...body.matchAll(/ARGV\[(\d+)\]/g)].map(([, number]) => String(number)));
  // Arguments after the last declared one are reached by index, so only that one may be declared and not used.
  const last = String(Math.max(0, ...[...declared].map(Number)));
  for (const number of used) {
    if (!declared.has(number)) throw new Error(`${name}.lua: uses ARGV[${number}], which its header does not declare`);
  }
  for (const number of declared) {
    if (!used.has(number) && !(number === last && /ARGV\[[a-z]/.test(body)))
      throw new Error(`${name}.lua: declares ARGV[${number}], which it does not use`);
  }
  const source = stripComments(body);
  return { purpose, source, digest: createHash("sha1").update(source).digest("hex") };
}

/** @param {string} body */
function stripComments(body) {
  return `${body
    .split("\n")
    .map((line) => line.trim())
    .filter((line) => line !== "" && !line.startsWith("--"))
    .join("\n")}\n`;
}

/**
 * @param {string} directory
 * @returns {[string, string][]}
 */
function luaFiles(directory) {
  return readdirSync(directory)
    .filter((file) => file.endsWith(".lua"))
    .sort()
    .map((file) => [path.basename(file, ".lua"), readFileSync(path.join(directory, file), "utf8")]);
}

/** @param {string} name */
function camel(name) {
  return name.replace(/-([a-z])/g, (_, letter) => letter.toUpperCase());
}

/** @param {string} source */
function quoted(source) {
  return `\`${source.replaceAll("\\", "\\\\").replaceAll("`", "\\`").replaceAll("${", "\\${")}\``;
}
