import { createHash } from "node:crypto";
import { constants } from "node:fs";
import { open, readdir, stat } from "node:fs/promises";
import { basename, join } from "node:path";
import { type Problem, SluiceError } from "sluice";
import type { ParsedPolicyFiles } from "sluice/policy-text";
import { isPolicyFileName } from "../../settings/is-policy-file-name.ts";
import { parsePolicies } from "./parse-policies.ts";

/** One policy file as it was found on disk. */
export interface PolicyFile {
  readonly file: string;
  readonly text: string;
}

/** All policy files behind one path, and a digest that changes exactly when their names or contents do. */
export interface PolicyFiles {
  readonly files: readonly PolicyFile[];
  readonly digest: string;
}

/** Policies ready to be used, and the digest of the files they came from. */
export interface LoadedPolicies extends ParsedPolicyFiles {
  readonly digest: string;
}

export interface RefusedPolicies {
  /** What was found on disk: the same text exactly when the same is found again. */
  readonly seen: string;
  readonly problems: readonly Problem[];
}

const maxFileBytes = 32 * 1024 * 1024;

/** The files behind a path: itself, or the policy files in it, sorted by name. */
export async function findPolicyFiles(path: string): Promise<readonly string[]> {
  const found = await reading(path, () => stat(path));
  if (!found.isDirectory()) {
    if (!found.isFile()) throw notAFile(path);
    return [path];
  }
  const names = (await reading(path, () => readdir(path))).filter(isPolicyFileName).sort();
  const files: string[] = [];
  for (const name of names) {
    const file = join(path, name);
    const entry = await reading(file, () => stat(file));
    if (entry.isFile()) files.push(file);
    else if (!entry.isDirectory()) throw notAFile(file);
  }
  if (files.length === 0) throw unreadable(path, "holds no .yaml, .yml or .json file; put a policy file there");
  return files;
}

/** Reads every file behind a path. Throws `invalid_policies` where one cannot be read. */
export async function readPolicyFiles(path: string): Promise<PolicyFiles> {
  const files: PolicyFile[] = [];
  for (const file of await findPolicyFiles(path)) files.push({ file, text: await reading(file, () => readText(file)) });
  return { files, digest: digestOf(files) };
}

/** SHA-256 over the names and texts of files, in hexadecimal. */
export function digestOf(files: readonly PolicyFile[]): string {
  const hash = createHash("sha256");
  for (const { file, text } of files) hash.update(`${basename(file)}\0${text.length}\0`).update(text);
  return hash.digest("hex");
}

/** Reads and parses what is behind a path. Throws `invalid_policies` with every problem of every file. */
export async function loadPolicies(path: string): Promise<LoadedPolicies> {
  const { files, digest } = await readPolicyFiles(path);
  return { ...parsePolicies(files), digest };
}

/** Opened without waiting: a pipe under the name of a file would keep us for as long as nobody writes to it. */
async function readText(file: string): Promise<string> {
  const handle = await open(file, constants.O_RDONLY | constants.O_NONBLOCK);
  try {
    const found = await handle.stat();
    if (!found.isFile()) throw notAFile(file);
    if (found.size > maxFileBytes)
      throw unreadable(file, `is ${found.size} bytes long; a policy file has at most ${maxFileBytes}, so split it`);
    return await handle.readFile("utf8");
  } finally {
    await handle.close();
  }
}

function notAFile(path: string): SluiceError {
  return unreadable(path, "is neither a file nor a folder; name a policy file or a folder of them");
}

/** The error for a file as a whole. */
export function unreadable(file: string, message: string): SluiceError {
  return new SluiceError("invalid_policies", `${file} ${message}`, [
    { path: [], message, place: { file, line: 1, column: 1 } },
  ]);
}

async function reading<T>(file: string, read: () => Promise<T>): Promise<T> {
  try {
    return await read();
  } catch (error) {
    if (error instanceof SluiceError) throw error;
    throw unreadable(file, reasons[(error as NodeJS.ErrnoException).code ?? ""] ?? `cannot be read: ${error}`);
  }
}

const reasons: Readonly<Record<string, string>> = {
  ENOENT: "does not exist",
  ENOTDIR: "does not exist: a part of its path is a file",
  EACCES: "cannot be read: permission denied",
  EPERM: "cannot be read: permission denied",
  ELOOP: "cannot be read: its symbolic links go round in circles",
};
