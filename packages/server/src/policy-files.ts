import { createHash } from "node:crypto";
import { readdir, readFile, stat } from "node:fs/promises";
import { basename, join } from "node:path";
import { SluiceError } from "sluice";
import { type ParsedPolicyFiles, parsePolicyFiles } from "sluice/policy-text";

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

const maxFileBytes = 32 * 1024 * 1024;

/** Whether a name in a folder is a policy file's. Hidden files and what editors leave behind are not. */
export function isPolicyFileName(name: string): boolean {
  return /\.(ya?ml|json)$/i.test(name) && !/^[.#~]/.test(name);
}

/** The files behind a path: itself, or the policy files in it, sorted by name. */
export async function findPolicyFiles(path: string): Promise<readonly string[]> {
  const found = await reading(path, () => stat(path));
  if (!found.isDirectory()) {
    if (!found.isFile())
      throw unreadable(path, "is neither a file nor a folder; name a policy file or a folder of them");
    return [path];
  }
  const names = (await reading(path, () => readdir(path))).filter(isPolicyFileName).sort();
  const files: string[] = [];
  for (const name of names) {
    const file = join(path, name);
    if (!(await reading(file, () => stat(file))).isDirectory()) files.push(file);
  }
  if (files.length === 0) throw unreadable(path, "holds no .yaml, .yml or .json file; put a policy file there");
  return files;
}

/** Reads every file behind a path. Throws `invalid_policies` where one cannot be read. */
export async function readPolicyFiles(path: string): Promise<PolicyFiles> {
  const files: PolicyFile[] = [];
  const hash = createHash("sha256");
  for (const file of await findPolicyFiles(path)) {
    const { size } = await reading(file, () => stat(file));
    if (size > maxFileBytes)
      throw unreadable(file, `is ${size} bytes long; a policy file has at most ${maxFileBytes}, so split it`);
    const text = await reading(file, () => readFile(file, "utf8"));
    hash.update(`${basename(file)}\0${text.length}\0`).update(text);
    files.push({ file, text });
  }
  return { files, digest: hash.digest("hex") };
}

/** Reads and parses what is behind a path. Throws `invalid_policies` with every problem of every file. */
export async function loadPolicies(path: string): Promise<LoadedPolicies> {
  const { files, digest } = await readPolicyFiles(path);
  return { ...parsePolicyFiles(files), digest };
}

function unreadable(file: string, message: string): SluiceError {
  return new SluiceError("invalid_policies", `${file} ${message}`, [
    { path: [], message, place: { file, line: 1, column: 1 } },
  ]);
}

async function reading<T>(file: string, read: () => Promise<T>): Promise<T> {
  try {
    return await read();
  } catch (error) {
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
