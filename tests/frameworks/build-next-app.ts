import { spawn } from "node:child_process";
import { cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { transformSync } from "rolldown/utils";
import { type Manifest, renderManifest } from "../../scripts/pack-packages.mjs";
import { repositoryRoot } from "../repository/source-tree.ts";

/** An app of Next's as its build left it, far from the repository. */
export interface BuiltApp {
  readonly folder: string;
  remove(): void;
}

/**
 * Builds `next-app` with our packages as JavaScript, as they are published. It is JavaScript itself, because Next would
 * install a compiler otherwise.
 */
export async function buildNextApp(): Promise<BuiltApp> {
  const folder = mkdtempSync(path.join(tmpdir(), "sluice-next-"));
  const remove = (): void => rmSync(folder, { recursive: true, force: true });
  try {
    copyAsJavaScript(path.join(import.meta.dirname, "next-app"), folder, namesOfNext);
    writeFileSync(
      path.join(folder, "package.json"),
      JSON.stringify({ name: "next-app", private: true, type: "module" }),
    );
    // Installed packages are linked, and lie outside the app.
    const config = { turbopack: { root: path.parse(folder).root } };
    writeFileSync(path.join(folder, "next.config.mjs"), `export default ${JSON.stringify(config)};\n`);
    for (const name of ["next", "react", "react-dom", "yaml"]) {
      mkdirSync(path.join(folder, "node_modules"), { recursive: true });
      symlinkSync(path.join(repositoryRoot, "node_modules", name), path.join(folder, "node_modules", name));
    }
    for (const home of ["packages/core", "packages/middleware"]) installPackage(home, folder);
    await build(folder);
    return { folder, remove };
  } catch (error) {
    remove();
    throw error;
  }
}

function installPackage(home: string, folder: string): void {
  const from = path.join(repositoryRoot, home);
  const manifest = JSON.parse(readFileSync(path.join(from, "package.json"), "utf8")) as Manifest;
  const to = path.join(folder, "node_modules", manifest.name);
  copyAsJavaScript(path.join(from, "src"), path.join(to, "dist"));
  writeFileSync(path.join(to, "package.json"), JSON.stringify(renderManifest(manifest, [])));
}

/** Next's own modules have other names in its apps than Node, and so our compiler, finds them by. */
function namesOfNext(code: string): string {
  return code.replaceAll(/(from "next\/\w+)\.js"/g, '$1"');
}

function copyAsJavaScript(from: string, to: string, change = (code: string): string => code): void {
  for (const entry of readdirSync(from, { recursive: true, withFileTypes: true })) {
    const source = path.join(entry.parentPath, entry.name);
    const target = path.join(to, path.relative(from, source));
    if (!entry.isFile() || entry.name.endsWith(".test.ts")) continue;
    mkdirSync(path.dirname(target), { recursive: true });
    if (!entry.name.endsWith(".ts")) {
      cpSync(source, target);
      continue;
    }
    const { code, errors } = transformSync(source, readFileSync(source, "utf8"), {
      typescript: { rewriteImportExtensions: "rewrite" },
    });
    if (errors.length > 0) throw new Error(`${source}: ${errors[0]?.message}`);
    writeFileSync(target.replace(/\.ts$/, ".js"), change(code));
  }
}

function build(folder: string): Promise<void> {
  const next = path.join(repositoryRoot, "node_modules/next/dist/bin/next");
  const env: NodeJS.ProcessEnv = { ...process.env, NODE_ENV: "production", NEXT_TELEMETRY_DISABLED: "1", CI: "1" };
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, [next, "build"], { cwd: folder, env, stdio: ["ignore", "pipe", "pipe"] });
    let printed = "";
    for (const stream of [child.stdout, child.stderr]) {
      stream.on("data", (chunk: Buffer) => {
        printed += chunk;
      });
    }
    child.once("error", reject);
    child.once("close", (code) => {
      if (code === 0) resolve();
      else reject(new Error(`next build ended with ${code}:\n${printed}`));
    });
  });
}
