// npm run conformance: holds the gRPC engines to h2spec and to clients that are not ours, and writes docs/conformance.md.
import path from "node:path";
import { ensureInstalledOrExit, repositoryRoot } from "./ensure-installed.mjs";
import { ensureServers } from "./ensure-servers.mjs";
import { findNodeOrExit, runInPlace } from "./runtime.mjs";

const args = process.argv.slice(2);
await ensureInstalledOrExit();
if (!args.includes("--help") && !args.includes("-h")) {
  await ensureServers().catch((error) => {
    process.stderr.write(`${error.message}\n`);
    process.exit(1);
  });
}
runInPlace(findNodeOrExit(), [path.join(repositoryRoot, "tests", "conformance", "run-conformance.ts"), ...args]);
