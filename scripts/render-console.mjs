import { readdirSync, readFileSync } from "node:fs";
import path from "node:path";
import { build } from "vite";
import { repositoryRoot } from "./ensure-installed.mjs";

const home = path.join(repositoryRoot, "packages", "console");

/**
 * The console as a server serves it: the text of every file, by its path. The same sources give the same files, on every machine.
 *
 * @returns {Promise<Record<string, string>>}
 */
export async function renderConsole() {
  process.env.NODE_ENV = "production";
  const made = await build({
    configFile: path.join(home, "vite.config.ts"),
    mode: "production",
    logLevel: "error",
    build: { write: false },
  });
  if (!("output" in made)) throw new Error("vite made several bundles, or watches, instead of making one");
  /** @type {[string, string][]} */
  const files = made.output.map((one) => [one.fileName, readText(one.type === "chunk" ? one.code : one.source)]);
  for (const name of readdirSync(path.join(home, "public")))
    files.push([name, readFileSync(path.join(home, "public", name), "utf8")]);
  return Object.fromEntries(files.sort(([one], [other]) => (one < other ? -1 : 1)));
}

/** @param {string | Uint8Array} source */
function readText(source) {
  return typeof source === "string" ? source : new TextDecoder("utf-8", { fatal: true }).decode(source);
}
