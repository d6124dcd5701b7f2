import { constants } from "node:fs";
import { open, readdir, stat } from "node:fs/promises";
import { join } from "node:path";
import { SluiceError } from "../errors.ts";
import { isPolicyFileName } from "./is-policy-file-name.ts";

/** One policy file as it was found on disk. */
export interface PolicyFile {
  readonly file: string;
  readonly text: string;
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
  if (files.length === 0) throw unreadablePolicies(path, "holds no .yaml, .yml or .json file; put a policy file there");
  return files;
}

/** Reads every file behind a path. Throws `invalid_policies` where one cannot be read. */
export async function readPolicyFiles(path: string): Promise<readonly PolicyFile[]> {
  const files: PolicyFile[] = [];
  for (const file of await findPolicyFiles(path)) files.push({ file, text: await reading(file, () => readText(file)) });
  return files;
}

/** Opened without blocking: a pipe under the name of a file would block us until a process writes to it. */
async function readText(file: string): Promise<string> {
  const handle = await open(file, constants.O_RDONLY | constants.O_NONBLOCK);
  try {
    const found = await handle.stat();
    if (!found.isFile()) throw notAFile(file);
    if (found.size > maxFileBytes)
      throw unreadablePolicies(
        file,
        `is ${found.size} bytes long; a policy file has at most ${maxFileBytes}, so split it`,
      );
    return await handle.readFile("utf8");
  } finally {
    await handle.close();
  }
}

function notAFile(path: string): SluiceError {
  return unreadablePolicies(path, "is neither a file nor a folder; name a policy file or a folder of them");
}

/** The error for a file as a whole. */
export function unreadablePolicies(file: string, message: string): SluiceError {
  return new SluiceError("invalid_policies", `${file} ${message}`, [
    { path: [], message, place: { file, line: 1, column: 1 } },
  ]);
}

async function reading<T>(file: string, read: () => Promise<T>): Promise<T> {
  try {
    return await read();
  } catch (error) {
    if (error instanceof SluiceError) throw error;
    throw unreadablePolicies(file, reasons[(error as NodeJS.ErrnoException).code ?? ""] ?? `cannot be read: ${error}`);
  }
}

const reasons: Readonly<Record<string, string>> = {
  ENOENT: "does not exist",
  ENOTDIR: "does not exist: a part of its path is a file",
  EACCES: "cannot be read: permission denied",
  EPERM: "cannot be read: permission denied",
  ELOOP: "cannot be read: its symbolic links go round in circles",
};
