// npm start: installs dependencies and serves.
import path from "node:path";
import { ensureInstalledOrExit, repositoryRoot } from "./ensure-installed.mjs";
import { findNodeOrExit, runInPlace } from "./runtime.mjs";
import { startArguments } from "./start-arguments.mjs";

const args = startArguments(process.argv.slice(2), process.env, repositoryRoot);

await ensureInstalledOrExit("serving");
const main = path.join(repositoryRoot, "packages", "cli", "src", "main.ts");
// npm runs scripts in the root; a relative path is relative to the user's working directory.
const cwd = process.env.npm_lifecycle_event === "start" ? process.env.INIT_CWD : undefined;
runInPlace(findNodeOrExit(), [main, "serve", ...args], { cwd });
