import { spawnSync } from "node:child_process";
import path from "node:path";
import { findNode } from "../../scripts/runtime.mjs";
import { repositoryRoot } from "../repository/source-tree.ts";

export interface InstalledNode {
  /** `20.20.2` */
  readonly version: string;
  readonly path: string;
}

/** The releases of Node that are tested in addition to the pinned one; each is installed in a separate workspace. */
const olderMajors = [20, 22];

/**
 * Every Node that came with the dependencies, oldest first. npm has them for Linux with glibc; on other platforms there is only the
 * one that runs this.
 */
export function findNodes(): readonly InstalledNode[] {
  const builtFor = `node-${process.platform}-${process.arch}`;
  const older = olderMajors.map((major) =>
    path.join(repositoryRoot, `tests/packages/node-${major}/node_modules`, builtFor, "bin/node"),
  );
  return [...older, findNode() ?? process.execPath].flatMap((file) => {
    const { status, stdout } = spawnSync(file, ["--version"], { encoding: "utf8" });
    return status === 0 ? [{ version: stdout.trim().slice(1), path: file }] : [];
  });
}

/** Whether npm has Nodes that run on this machine. */
export function npmHasNodes(): boolean {
  if (process.platform !== "linux" || !["x64", "arm64"].includes(process.arch)) return false;
  const { header } = process.report.getReport() as { header: { glibcVersionRuntime?: string } };
  return header.glibcVersionRuntime !== undefined;
}

/** Whether a Node is new enough for what a package says under `engines`: `>=20`, `>=22.18`. */
export function admits(engines: string, version: string): boolean {
  const oldest = /^>=\s*(\d+(?:\.\d+){0,2})$/.exec(engines)?.[1];
  if (oldest === undefined) throw new Error(`engines.node is "${engines}", and not of the form >=20`);
  const wanted = oldest.split(".").map(Number);
  const given = version.split(".").map(Number);
  const different = wanted.findIndex((number, index) => number !== given[index]);
  return different === -1 || given[different]! > wanted[different]!;
}
