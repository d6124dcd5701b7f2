// npm run fuzz: sends a server random conversations of HTTP/2, for --minutes N (10), from --seed N (any).
import path from "node:path";
import { ensureInstalledOrExit, repositoryRoot } from "./ensure-installed.mjs";
import { findNodeOrExit, runInPlace } from "./runtime.mjs";

await ensureInstalledOrExit();
const folder = path.join(repositoryRoot, "packages/server/src/data-plane/transports/grpc/http2/testing");
runInPlace(findNodeOrExit(), [path.join(folder, "run-fuzz.ts"), ...process.argv.slice(2)]);
