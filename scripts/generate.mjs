// npm run generate: writes every file that is made from source. With --check it only tells which are stale.
import { spawnSync } from "node:child_process";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import { pathToFileURL } from "node:url";
import { ensureInstalledOrExit, repositoryRoot } from "./ensure-installed.mjs";
import { environmentFor, findNodeOrExit } from "./runtime.mjs";

/**
 * One row per generated file: `render` is a function without parameters, exported by the module `from`, that returns
 * (or promises) the file's text, or a value to be written as JSON.
 */
const generated = [
  { file: "docs/policy.schema.json", from: "packages/core/src/index.ts", render: "policyFileSchema" },
  { file: "packages/redis/src/scripts.generated.ts", from: "scripts/embed-lua.mjs", render: "renderScripts" },
  { file: "tests/repository/public-surface.txt", from: "tests/repository/public-surface.ts", render: "renderSurface" },
];

const renderer = `
const [url, name] = process.argv.slice(1);
const module = await import(url);
if (typeof module[name] !== "function") throw new Error(url + " exports no function " + name);
const made = await module[name]();
process.stdout.write(typeof made === "string" ? made : JSON.stringify(made, null, 2) + "\\n");
`;

const check = process.argv.includes("--check");
await ensureInstalledOrExit();
const node = findNodeOrExit();
let failures = 0;

for (const { file, from, render } of generated) {
  const url = pathToFileURL(path.join(repositoryRoot, from)).href;
  const { status, stdout, stderr } = spawnSync(
    node,
    ["-C", "source", "--input-type=module", "-e", renderer, url, render],
    {
      cwd: repositoryRoot,
      env: environmentFor(node),
      encoding: "utf8",
      maxBuffer: 64 * 1024 * 1024,
    },
  );
  if (status !== 0) {
    process.stderr.write(`${file} cannot be made from ${from}:\n${stderr}\n`);
    failures += 1;
    continue;
  }
  const target = path.join(repositoryRoot, file);
  if (stdout === readIfPresent(target)) continue;
  if (check) {
    process.stderr.write(`${file} is stale: run \`npm run generate\` and commit it.\n`);
    failures += 1;
  } else {
    mkdirSync(path.dirname(target), { recursive: true });
    writeFileSync(target, stdout);
    process.stdout.write(`wrote ${file}\n`);
  }
}
process.exitCode = failures === 0 ? 0 : 1;

/** @param {string} file */
function readIfPresent(file) {
  try {
    return readFileSync(file, "utf8");
  } catch {
    return undefined;
  }
}
