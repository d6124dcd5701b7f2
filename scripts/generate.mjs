// npm run generate: writes every generated file. With --check it only reports which are stale.
import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import path from "node:path";
import { pathToFileURL } from "node:url";
import { ensureInstalledOrExit, repositoryRoot } from "./ensure-installed.mjs";
import { environmentFor, findNodeOrExit } from "./runtime.mjs";

/**
 * One row per generated file: `render` is a function without parameters, exported by the module `from`, that returns
 * (or promises) the file's text, or a value to be written as JSON. For a folder it returns the text of each file in it, by
 * path.
 *
 * @type {readonly ({ from: string, render: string } & ({ file: string } | { folder: string }))[]}
 */
const generated = [
  { folder: "packages/protocol/src/generated", from: "scripts/render-protocol.mjs", render: "renderProtocol" },
  { file: "docs/policy.schema.json", from: "packages/core/src/index.ts", render: "policyFileSchema" },
  { file: "packages/redis/src/scripts.generated.ts", from: "scripts/embed-lua.mjs", render: "renderScripts" },
  { folder: "packages/console/dist", from: "scripts/render-console.mjs", render: "renderConsole" },
  {
    file: "deploy/helm/sluice/files/alerts.yaml",
    from: "scripts/render-chart-alerts.mjs",
    render: "renderChartAlerts",
  },
  { folder: "deploy/grafana/dashboards", from: "scripts/render-dashboards.mjs", render: "renderDashboards" },
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

for (const row of generated) {
  const { from, render } = row;
  const made = "file" in row ? row.file : row.folder;
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
    process.stderr.write(`${made} cannot be generated from ${from}:\n${stderr}\n`);
    failures += 1;
    continue;
  }
  if ("file" in row) {
    put(made, stdout);
    continue;
  }
  /** @type {Record<string, string>} */
  const texts = JSON.parse(stdout);
  for (const [file, text] of Object.entries(texts)) put(`${made}/${file}`, text);
  for (const file of filesIn(made)) if (!(file in texts)) remove(`${made}/${file}`);
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

/**
 * @param {string} file
 * @param {string} text
 */
function put(file, text) {
  const target = path.join(repositoryRoot, file);
  if (text === readIfPresent(target)) return;
  if (check) return stale(file);
  mkdirSync(path.dirname(target), { recursive: true });
  writeFileSync(target, text);
  process.stdout.write(`wrote ${file}\n`);
}

/** @param {string} file */
function remove(file) {
  if (check) return stale(file);
  rmSync(path.join(repositoryRoot, file));
  process.stdout.write(`removed ${file}\n`);
}

/** @param {string} file */
function stale(file) {
  process.stderr.write(`${file} is stale: run \`npm run generate\` and commit it.\n`);
  failures += 1;
}

/**
 * The paths of all files in a folder.
 *
 * @param {string} folder
 */
function filesIn(folder) {
  const from = path.join(repositoryRoot, folder);
  if (!existsSync(from)) return [];
  return readdirSync(from, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => path.relative(from, path.join(entry.parentPath, entry.name)).replaceAll(path.sep, "/"));
}
