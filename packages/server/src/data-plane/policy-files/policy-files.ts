import { createHash } from "node:crypto";
import { basename } from "node:path";
import type { Problem } from "sluice";
import { type PolicyFile, readPolicyFiles as readFiles } from "sluice/policy-file";
import { type ParsedPolicies, parseServedPolicies } from "./parse-served-policies.ts";

/** All policy files behind one path, and a digest that changes exactly when their names or contents do. */
export interface PolicyFiles {
  readonly files: readonly PolicyFile[];
  readonly digest: string;
}

/** Policies ready to be used, and the digest of the files they came from. */
export interface LoadedPolicies extends ParsedPolicies {
  readonly digest: string;
}

export interface RefusedPolicies {
  /** What was found on disk: the same text if and only if the same is found again. */
  readonly seen: string;
  readonly problems: readonly Problem[];
}

/** Reads every file behind a path. Throws `invalid_policies` where one cannot be read. */
export async function readPolicyFiles(path: string): Promise<PolicyFiles> {
  const files = await readFiles(path);
  return { files, digest: digestFiles(files) };
}

/** SHA-256 over the names and texts of files, in hexadecimal. */
export function digestFiles(files: readonly PolicyFile[]): string {
  const hash = createHash("sha256");
  for (const { file, text } of files) hash.update(`${basename(file)}\0${text.length}\0`).update(text);
  return hash.digest("hex");
}

/** Reads and parses the files behind a path. Throws `invalid_policies` with every problem of every file. */
export async function loadPolicies(path: string): Promise<LoadedPolicies> {
  const { files, digest } = await readPolicyFiles(path);
  return { ...parseServedPolicies(files), digest };
}
