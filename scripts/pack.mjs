// npm run pack -- FOLDER: makes the tarballs to publish, one for every public package. `npm publish` accepts each.
import { statSync } from "node:fs";
import path from "node:path";
import { ensureInstalledOrExit } from "./ensure-installed.mjs";
import { packPackages } from "./pack-packages.mjs";
import { environmentFor, findNodeOrExit } from "./runtime.mjs";

const [folder, ...rest] = process.argv.slice(2);
if (folder === undefined || rest.length > 0) {
  process.stderr.write("Name the folder for the tarballs: npm run pack -- FOLDER\n");
  process.exit(2);
}

await ensureInstalledOrExit();
// npm runs scripts at the root; a relative folder is relative to the user's working directory.
const target = path.resolve(process.env.INIT_CWD ?? "", folder);
try {
  for (const { tarball } of await packPackages(target, environmentFor(findNodeOrExit()))) {
    process.stdout.write(`${tarball} (${Math.ceil(statSync(tarball).size / 1000)} kB)\n`);
  }
} catch (error) {
  process.stderr.write(`Nothing was packed: ${error instanceof Error ? error.message : error}\n`);
  process.exit(1);
}
