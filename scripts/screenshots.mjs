// npm run screenshots: takes the pictures of docs/console.md in a browser, from a server with traffic.
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
const program = path.join(repositoryRoot, "tests", "console", "take-screenshots.ts");
runInPlace(findNodeOrExit(), [program, ...process.argv.slice(2)]);
