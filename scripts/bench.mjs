// npm run bench -- <suite> [--json]: runs bench/<suite>.ts.
import { existsSync, readdirSync } from "node:fs";
import path from "node:path";
import { ensureInstalledOrExit, repositoryRoot } from "./ensure-installed.mjs";
import { ensureServers } from "./ensure-servers.mjs";
import { findNodeOrExit, runInPlace } from "./runtime.mjs";

const folder = path.join(repositoryRoot, "bench");
const [suite, ...args] = process.argv.slice(2);

if (suite === undefined || !/^[a-z][a-z0-9-]*$/.test(suite) || !existsSync(path.join(folder, `${suite}.ts`))) {
  const suites = readdirSync(folder)
    .filter((file) => file.endsWith(".ts") && !file.endsWith(".test.ts"))
    .map((file) => path.basename(file, ".ts"));
  const problem = suite === undefined ? "Name a suite" : `There is no suite "${suite}"`;
  process.stderr.write(`${problem}: npm run bench -- <suite> [--json], where <suite> is ${suites.join(", ")}.\n`);
  process.exit(2);
}

await ensureInstalledOrExit();
const onServers = [
  ...[
    "redis",
    "apps",
    "service",
    "soak",
    "propagation",
    "lease",
    "latency",
    "fleet",
    "usage",
    "peers",
    "console",
    "strong",
  ],
];
if (onServers.includes(suite)) {
  await ensureServers().catch((error) => {
    process.stderr.write(`${error.message}\n`);
    process.exit(1);
  });
}
runInPlace(findNodeOrExit(), ["--expose-gc", path.join(folder, `${suite}.ts`), ...args]);
