import { spawnSync } from "node:child_process";
import path from "node:path";
import { repositoryRoot } from "../repository/source-tree.ts";

const folder = path.join(repositoryRoot, "packages/protocol/proto");
const buf = path.join(repositoryRoot, "node_modules/.bin/buf");

/** The .proto files that clients generate code from, compiled: what buf compares. */
export const protocolImage: string = path.join(import.meta.dirname, "promised/protocol.binpb");

export function writeProtocolImage(image: string = protocolImage): void {
  const { status, stderr } = spawnSync(buf, ["build", "--exclude-source-info", "-o", image], {
    cwd: folder,
    encoding: "utf8",
  });
  if (status !== 0) throw new Error(`buf build failed:\n${stderr}`);
}

/** What breaks clients that were generated from `image`, one line each: on the wire, in JSON and in generated code. */
export function findProtocolBreaks(image: string = protocolImage, proto: string = folder): readonly string[] {
  const config = JSON.stringify({ version: "v2", breaking: { use: ["PACKAGE", "WIRE_JSON"] } });
  const { status, stdout, stderr } = spawnSync(buf, ["breaking", "--against", image, "--config", config], {
    cwd: proto,
    encoding: "utf8",
  });
  if (status === 0) return [];
  const lines = stdout.split("\n").filter(Boolean);
  if (lines.length === 0) throw new Error(`buf breaking failed:\n${stderr}`);
  return lines;
}
