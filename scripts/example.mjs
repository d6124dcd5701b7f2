// npm run example -- <name>: runs examples/<name>/main.ts. An example with its own tsconfig.json is compiled first.
import { spawnSync } from "node:child_process";
import { existsSync, readdirSync } from "node:fs";
import path from "node:path";
import { ensureInstalledOrExit, repositoryRoot } from "./ensure-installed.mjs";
import { environmentFor, findNodeOrExit, runInPlace } from "./runtime.mjs";

const folder = path.join(repositoryRoot, "examples");
const examples = readdirSync(folder).filter((name) => existsSync(path.join(folder, name, "main.ts")));
const [name = "", ...args] = process.argv.slice(2);

if (!examples.includes(name)) {
  const problem = name === "" ? "Name an example" : `There is no example "${name}"`;
  process.stderr.write(`${problem}: npm run example -- <name>, where <name> is ${examples.join(", ")}.\n`);
  process.exit(2);
}

await ensureInstalledOrExit();
const node = findNodeOrExit();
const own = path.join(folder, name);
if (existsSync(path.join(own, "tsconfig.json"))) {
  const { status } = spawnSync("tsc", ["-p", own], { stdio: "inherit", env: environmentFor(node) });
  if (status !== 0) process.exit(status ?? 1);
  runInPlace(node, [path.join(own, "dist", "main.js"), ...args]);
} else {
  runInPlace(node, [path.join(own, "main.ts"), ...args]);
}
