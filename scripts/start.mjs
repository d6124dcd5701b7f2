// npm start: installs what is needed and serves, on config/policies.yaml unless told otherwise.
import path from "node:path";
import { ensureInstalledOrExit, repositoryRoot } from "./ensure-installed.mjs";
import { findNodeOrExit, runInPlace } from "./runtime.mjs";

const args = process.argv.slice(2);
const configChosen =
  Boolean(process.env.RATE_LIMIT_CONFIG) || args.some((arg) => arg === "--config" || arg.startsWith("--config="));
const config = configChosen ? [] : ["--config", path.join(repositoryRoot, "config", "policies.yaml")];

await ensureInstalledOrExit("serving");
const main = path.join(repositoryRoot, "packages", "server", "src", "main.ts");
// npm runs scripts in the root; a relative path is meant from where the user stands.
const cwd = process.env.npm_lifecycle_event === "start" ? process.env.INIT_CWD : undefined;
runInPlace(findNodeOrExit(), [main, "serve", ...config, ...args], { cwd });
