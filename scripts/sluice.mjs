// ./sluice: the `sluice` command from a clone, with nothing to build. Installs dependencies first.
import path from "node:path";
import { ensureInstalledOrExit, repositoryRoot } from "./ensure-installed.mjs";
import { findNodeOrExit, runInPlace } from "./runtime.mjs";

await ensureInstalledOrExit("serving");
runInPlace(findNodeOrExit(), [
  path.join(repositoryRoot, "packages", "cli", "src", "main.ts"),
  ...process.argv.slice(2),
]);
