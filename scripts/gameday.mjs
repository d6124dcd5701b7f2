// npm run gameday: plays game days on real servers under traffic, and with --write reports them in docs/game-days.md.
import path from "node:path";
import { ensureInstalledOrExit, repositoryRoot } from "./ensure-installed.mjs";
import { ensureServers } from "./ensure-servers.mjs";
import { findNodeOrExit, runInPlace } from "./runtime.mjs";

await ensureInstalledOrExit();
try {
  await ensureServers();
} catch (error) {
  process.stderr.write(`${error instanceof Error ? error.message : error}\n`);
  process.exit(1);
}
runInPlace(findNodeOrExit(), [
  path.join(repositoryRoot, "tests", "gameday", "run-game-days.ts"),
  ...process.argv.slice(2),
]);
